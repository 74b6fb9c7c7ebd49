"""Words that say little by themselves, by language; words and token vectors leave them out.

Words for times, such as "yesterday", are not among them: a question may be about them.
"""

STOP_WORDS = frozenset(
    "a an the and or of to in on at for is are was were be been do does did what when where who "
    "which how why with his her their its it he she they i we you my your that this".split()
)
# Words by which a text is taken for English, beside those above.
COMMON_ENGLISH = STOP_WORDS | frozenset(
    "about after again all also always am any anybody anyone around as ask asked away back bad "
    "because before being best better big both but by call called came can cannot come could day "
    "days didn doesn doing don done down each else ever every everyone far fast feel felt few "
    "find first found friend friends from fun gave get gets getting give go goes going gone good "
    "got great had hadn hard has hasn have haven having help here hers herself hi him himself "
    "home hope if into isn just keep kept kind knew know known last later least left less let "
    "life like liked little live ll lol long look looking lot lots love loved loves made make "
    "makes making man many may maybe me mean men met might mine more most mother much must myself "
    "name near need never new next nice no nor not now off often oh ok okay old once one only "
    "other our ours out over own part past people per place plan plus put quite rather re read "
    "really right room run said same saw say see seems seen set should show since sister so some "
    "someone something son sorry start still such sun sure take tell than thank thanks them "
    "themselves then there these thing things think those though thought through till time "
    "times told too took tried true try trying two under until up us use used usually ve very "
    "visit visited want wanted war warm wasn way week weeks well went weren while whom whose will "
    "win wish within without woman women won work worked would wow year years yes yet young "
    "ape arm art baby bad bail ball ban bar base bin bit boy camp car care cat chat city con coin "
    "dad data date den dies din do dog don dos dug eat eight en fat few film fin five for "
    "force four fur ham hem her hill hun hut ill in item jam job lama led "
    "mail male man mar mars mas media mens met moment most mot nine "
    "of par past pat pie pour pro rein sin six "
    "sole some ten under vet via with wore zero".split()
)
# Words that are often part of a name: alone, they tell no language.
NAME_PARTICLES = frozenset(
    "al av bin d da das de degli dei del della delle dem den der des di do dos du e el i l la las "
    "le les los o san santa st ste sul te ten ter van vom von y zu zum zur".split()
)
_LISTS = {
    "arabic": "من إلى الى على عن في مع هل ما ماذا متى أين اين كيف لماذا لمن كم أي اي هو هي هم هن "
    "أنا انا أنت انت نحن هذا هذه ذلك تلك هؤلاء الذي التي الذين و أو او ثم لكن بل إن ان أن كان "
    "كانت يكون تكون كل بعض قد لقد لم لن لا ليس ليست عند عندي لي لك له لها لنا لهم بي به بها فيه "
    "فيها منه منها عليه عليها إليه اليه حتى إذا اذا لو كما مثل غير يا أيضا ايضا عليّ علي",
    "basque": "eta edo baina ez bai da dira naiz zara gara nire zure bere gure haren hau hori "
    "hura hauek horiek nor zer non noiz nola zergatik zein zenbat du dute dut zuen ditu dituzte "
    "bat batzuk ere bezala baino egin izan oso ni zu gu",
    "catalan": "el la els les l un una uns unes de d del dels i o però que qui què quin quina "
    "quins quines quan on com per amb sense en a al als meu meva meus meves teu teva seu seva "
    "seus seves nostre nostra és són era soc sóc ets ser estar està estan té tenen tinc tens ha "
    "han he hi ho no sí jo tu ell ella ells elles em et es ens us se li aquest aquesta aquests "
    "aquestes això molt més també quant quants quantes perquè",
    "czech": "a i že se si je jsou jsem jsi jsme byl byla bylo byli být na v ve z ze do s k ke o "
    "u po pro při nebo ale když kdy kde kdo co jak proč který která které kolik můj moje mého "
    "mou tvůj jeho její náš naše váš jejich ten ta to tento tato toto ty já on ona oni my vy mě "
    "mi mu ho ji jí má mají mám máš jaký jaká jaké ne ano také už jen",
    "danish": "og i at det den de en et er var har havde ikke på med til af for fra om som der "
    "hvad hvem hvor hvornår hvordan hvorfor hvilken hvilket hvilke jeg du han hun vi mig dig ham "
    "hende os dem min mit mine din dit dine hans hendes vores deres sin sit sine eller men så "
    "kan skal vil blev bliver være været denne dette disse også meget alle hedder",
    "dutch": "de het een en of maar van in op aan te om voor met bij naar uit over door is zijn "
    "was waren ben bent heb hebt heeft hebben had hadden wordt worden werd niet geen wel ook ik "
    "je jij u hij ze zij we wij jullie mij me hem haar hen ons onze mijn jouw uw hun dit dat "
    "deze die er hier daar wat wie waar wanneer hoe waarom welke welk hoeveel als dan nog al zo "
    "zich heel veel ander andere alle alles iets kan kunnen moet moeten wil",
    "estonian": "ja või aga et see seda selle need ma mina sa sina ta tema me meie te teie nad "
    "nemad minu mu sinu oma on oli olen oled oleme ei ole kes mis kus millal kuidas miks milline "
    "mitu kui ka siis nii väga mida mul sul tal",
    "finnish": "ja tai mutta että se ne hän he minä sinä me te minun sinun hänen meidän heidän on "
    "oli ovat olivat olen olet olemme ole ei en et eivät mikä mitä missä mihin mistä milloin "
    "kuka ketä kenen miten miksi millainen kuinka tämä tuo nämä nuo joka jotka kun jos niin kuin "
    "myös minulla hänellä minua",
    "french": "le la les l un une des de d du au aux et ou mais que qu qui quoi quel quelle quels "
    "quelles quand où comment pourquoi combien dans en sur sous pour par avec sans chez à a as "
    "ai ont avons avez est es suis sont sommes êtes était étaient été être avoir c ce cet cette "
    "ces ça j je tu il elle on nous vous ils elles m me t te s se lui leur leurs mon ma mes ton "
    "ta tes son sa ses notre nos votre vos n ne pas plus y si très aussi moi toi autre autres "
    "tout toute tous toutes peut peux doit dois veut veux fait",
    "german": "der die das den dem des ein eine einen einem einer eines und oder aber nicht kein "
    "keine keinen ist sind war waren bin bist sein seid habe hast hat haben hatte hatten wird "
    "werden wurde wurden ich du er sie es wir ihr mich dich mir dir ihm ihn ihnen uns euch sich "
    "mein meine meinen meinem meiner meines dein deine deinen deinem deiner seine seinen seinem "
    "seiner ihre ihren ihrem ihrer unser unsere unseren unserem unserer euer eure wer was wann "
    "wo wie warum wieso wohin woher wem wen wessen welche welcher welches welchen welchem in im "
    "an am auf aus bei beim mit nach von vom zu zum zur für über unter um durch gegen ohne als "
    "auch so dass daß wenn dieser diese dieses diesen diesem noch nur sehr viele viel man andere "
    "anderen anderer alle alles etwas kann können muss müssen soll möchte da dort hier",
    "greek": "ο η το οι τα του της των τον την τους τις ένα ένας μια μία και ή αλλά να θα με σε "
    "στο στη στην στον στα στις στους από για είναι ήταν είμαι είσαι έχω έχει έχουν είχε δεν μη "
    "μην που πού ποιος ποια ποιο ποιοι τι πότε πώς πως γιατί πόσο πόσα πόσοι μου σου μας σας "
    "αυτός αυτή αυτό εγώ εσύ εμείς κι",
    "hindi": "का की के को से में पर और या है हैं था थी थे हो होता हूँ हूं क्या कब कहाँ कहां कौन "
    "कैसे क्यों किस किसने कितने कितना कितनी मैं मेरा मेरी मेरे मुझे हम हमारा हमारे हमारी तुम आप "
    "आपका आपके वह वे यह ये इस उस उसका उसकी उसके उन इन ने भी ही तो नहीं न एक कि जो",
    "hungarian": "a az egy és vagy de hogy nem is van vannak volt voltak vagyok lesz ki mi hol "
    "mikor hogyan miért melyik milyen mennyi hány hova honnan én te ő ti ők ez azt ezt ezek azok "
    "engem nekem neked neki nekünk akkor mint csak már még meg ha s amely aki ami mit kit",
    "indonesian": "yang dan atau tetapi di ke dari untuk dengan pada adalah ini itu saya aku kamu "
    "anda dia mereka kami kita apa siapa kapan dimana mana bagaimana mengapa kenapa berapa tidak "
    "bukan sudah akan telah juga ada oleh karena dalam seperti lebih",
    "irish": "an na agus nó ach ar ag as le do de i in is tá bhí bhfuil níl mé tú sé sí muid sibh "
    "siad mo a ár bhur cad cé cá conas cathain cén go leis seo sin é iad",
    "italian": "il lo la i gli le l un uno una di d del dello della dei degli delle dell a al "
    "allo alla ai agli alle all da dal dalla dai dall in nel nello nella nei negli nelle nell su "
    "sul sulla sui sugli sulle sull con per tra fra e ed o ma che chi cosa quale quali quando "
    "dove come perché quanto quanta quanti quante è sono sei siamo siete era erano essere ho hai "
    "ha abbiamo hanno avere non io tu lui lei noi voi loro mi ti si ci vi mio mia miei mie tuo "
    "tua tuoi tue suo sua suoi sue nostro nostra nostri nostre questo questa questi queste quel "
    "quello quella quelli c dov cos qual anche più molto se altro altra altri altre tutto tutta "
    "tutti tutte può deve vuole vuoi",
    "lithuanian": "ir ar bet kad yra buvo esu esi kas kur kada kaip kodėl kuris kuri koks kokia "
    "kiek aš tu jis ji mes jūs jie jos mano tavo savo mūsų jo ne nėra su į iš ant prie per už "
    "tai šis ši man mane turi",
    "norwegian": "og i at det den de en et ei er var har hadde ikke på med til av for fra om som "
    "der hva hvem hvor når hvordan hvorfor hvilken hvilket hvilke jeg du han hun vi meg deg ham "
    "henne oss dem min mitt mine mi din ditt dine hans hennes vår vårt våre deres sin sitt sine "
    "eller men så kan skal vil ble blir være vært denne dette disse også mye alle heter",
    "polish": "i a że się jest są był była było byli być na w we z ze do o u po od dla przy lub "
    "albo ale czy nie tak kto co gdzie kiedy jak dlaczego który która które jaki jaka jakie ile "
    "mój moja moje moją mojego mojej twój twoja jego jej nasz nasza nasze ich ten ta to tego tej "
    "tym te ja ty on ona ono my wy oni mnie mi mu go ją ma mam mają już też tylko",
    "portuguese": "o a os as um uma uns umas de do da dos das em no na nos nas num numa por pelo "
    "pela pelos pelas para com sem sobre e ou mas que quem qual quais quando onde aonde como "
    "porque quanto quanta quantos quantas é são sou somos era eram foi foram ser estar está "
    "estão estou tem têm tenho tinha há não sim eu tu você vocês ele ela nós eles elas me te se "
    "lhe lhes meu minha meus minhas teu tua seu sua seus suas nosso nossa nossos nossas este "
    "esta estes estas esse essa isso isto aquele aquela ao à aos às já também muito mais outro "
    "outra outros outras todo toda todos todas pode deve quer",
    "romanian": "și si sau dar că ca să nu este e sunt era erau am ai are avem au fi fost un o "
    "unei unui de la în din pe cu pentru prin despre ce cine unde când cum care cât câți câte eu "
    "tu el ea noi voi ei ele mă te se îmi îți îi meu mea mei mele tău ta său sa lui nostru "
    "noastră acest această aceasta acesta mai foarte al ale",
    "russian": "и а но или да не ни что кто где когда как почему зачем какой какая какое какие "
    "каком какую какого куда откуда сколько чей чья чьё чьи в во на с со к ко от до из у о об по "
    "за под над для при без через я ты он она оно мы вы они меня мне мной тебя тебе его ему её "
    "ее ей нас нам вас вам их им мой моя моё мое мои моего моей моих мою твой твоя свой свои "
    "своя наш наша наше наши наших ваш этот эта это эти тот та те то был была было были есть "
    "будет бы же ли так уже ещё еще",
    "spanish": "el la los las un una unos unas lo de del a al en con sin por para sobre y e o u "
    "pero que qué quien quién quiénes cual cuál cuáles cuando cuándo donde dónde adónde como "
    "cómo cuanto cuánto cuánta cuántos cuántas porque es son soy eres somos era eran fue ser "
    "está están estoy estar estaba hay ha han he hemos había tiene tienen tengo tenía no sí yo "
    "tú él ella nosotros ellos ellas usted ustedes me te se nos le les mi mis tu tus su sus mío "
    "mía nuestro nuestra nuestros nuestras este esta estos estas ese esa esos esas eso esto "
    "aquel aquella muy más también ya ni si otro otra otros otras todo toda todos todas algo "
    "alguno alguna algunos algunas puede puedo debe quiere quiero",
    "swedish": "och i att det den de en ett är var har hade inte på med till av för från om som "
    "vad vem när hur varför vilken vilket vilka jag du han hon vi ni mig dig honom henne oss er "
    "dem min mitt mina din ditt dina hans hennes vår vårt våra deras sin sitt sina eller men så "
    "kan ska skall vill blev blir vara varit denna detta dessa också mycket alla heter",
    "turkish": "ve veya ya ama ile için bir bu şu o da de ki mi mı mu mü ne neden nasıl nerede "
    "nereye nereden kim kime kimin hangi kaç ben sen biz siz onlar beni bana bende benim senin "
    "onun bizim sizin onların var yok değil çok daha gibi kadar olarak olan en her hep bazı "
    "bütün tüm başka",
}
STOP_WORDS_OF = {language: frozenset(words.split()) for language, words in _LISTS.items()}
