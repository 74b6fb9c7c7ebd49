"""Made-up Chinese facts about people, told as facts or in passing in a conversation.

Each is asked for twice: with words that it shares, and in other words, of which only the person's
name is shared. The same topics hold for other people and the same people for other topics, so that
neither alone finds the answer.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

PEOPLE = ["妈妈", "爸爸", "小李", "老张", "表姐", "王老师", "赵阿姨", "陈晨"]
DAYS = "三月五日 四月十二日 六月一日 七月二十日 九月九日 十月十八日 十二月三日 二月十四日".split()
CITIES = "成都 厦门 哈尔滨 西安 苏州 昆明 青岛 长沙".split()
# A statement, a question that shares its words, one in other words, and values.
TOPICS = [
    ("{who}的生日是{x}", "{who}的生日是哪一天？", "什么时候该给{who}送蛋糕？", DAYS),
    ("{who}住在{x}", "{who}住在哪里？", "去{who}家要到哪个城市？", CITIES),
    (
        "{who}的工作是{x}",
        "{who}的工作是什么？",
        "{who}靠哪一行谋生？",
        "会计 护士 厨师 律师 司机 翻译 建筑师 记者".split(),
    ),
    (
        "{who}对{x}过敏",
        "{who}对什么过敏？",
        "请{who}吃饭要避开哪样食材？",
        "花生 海鲜 牛奶 芒果 鸡蛋 大豆 虾 核桃".split(),
    ),
    (
        "{who}养了一只{x}",
        "{who}养了一只什么？",
        "{who}家里有哪种小动物？",
        "橘猫 柯基 鹦鹉 兔子 乌龟 仓鼠 金毛 八哥".split(),
    ),
    (
        "{who}在学{x}",
        "{who}在学什么乐器？",
        "{who}喜欢演奏哪种音乐？",
        "钢琴 二胡 吉他 古筝 小提琴 萨克斯 琵琶 架子鼓".split(),
    ),
    (
        "{who}最喜欢的颜色是{x}",
        "{who}最喜欢的颜色是什么？",
        "给{who}买围巾挑哪种色调？",
        "深蓝 墨绿 酒红 米白 紫色 橙色 灰色 粉色".split(),
    ),
    (
        "{who}开一辆{x}",
        "{who}开一辆什么车？",
        "{who}平时用什么代步？",
        "面包车 越野车 旧轿车 电动车 皮卡 跑车 摩托 房车".split(),
    ),
    (
        "{who}毕业于{x}",
        "{who}毕业于哪所学校？",
        "{who}以前在哪儿念书？",
        "北京大学 武汉大学 浙江大学 南开大学 四川大学 中山大学 厦门大学 吉林大学".split(),
    ),
    (
        "{who}的电话尾号是{x}",
        "{who}的电话尾号是多少？",
        "想联系{who}，号码最后几位是什么？",
        "3817 4402 9156 7730 2681 5094 6348 1275".split(),
    ),
    ("{who}订了去{x}的机票", "{who}订了去哪里的机票？", "{who}要坐飞机到什么地方？", CITIES),
    (
        "{who}每天早上喝{x}",
        "{who}每天早上喝什么？",
        "{who}起床后来一杯哪种饮料？",
        "豆浆 拿铁 绿茶 蜂蜜水 红茶 酸奶 美式咖啡 柠檬水".split(),
    ),
    (
        "{who}周末常去{x}",
        "{who}周末常去做什么？",
        "{who}休息日怎么锻炼身体？",
        "爬山 游泳 打羽毛球 骑车 跑步 滑雪 打太极 攀岩".split(),
    ),
    (
        "{who}的{x}受伤了",
        "{who}的哪里受伤了？",
        "{who}身上什么部位疼？",
        "膝盖 肩膀 脚踝 手腕 腰 脖子 手指 胳膊肘".split(),
    ),
    (
        "{who}正在读《{x}》",
        "{who}正在读哪本书？",
        "{who}手边翻着哪部小说？",
        "红楼梦 三体 围城 活着 边城 骆驼祥子 平凡的世界 白鹿原".split(),
    ),
    (
        "{who}每晚要吃{x}",
        "{who}每晚要吃什么药？",
        "{who}睡前得服用哪种处方？",
        "降压药 维生素 钙片 褪黑素 阿司匹林 鱼油 胃药 叶酸".split(),
    ),
    (
        "{who}预订了{x}酒店",
        "{who}预订了哪家酒店？",
        "{who}旅行时在什么地方过夜？",
        "湖滨 锦江 海景 云山 和平 花园 长城 白天鹅".split(),
    ),
    (
        "{who}的结婚纪念日是{x}",
        "{who}的结婚纪念日是哪一天？",
        "{who}跟爱人几号领的证？",
        DAYS,
    ),
    (
        "{who}穿{x}的鞋",
        "{who}穿多大的鞋？",
        "给{who}买靴子选几号？",
        "36码 37码 38码 39码 40码 41码 42码 43码".split(),
    ),
    (
        "{who}最爱吃{x}",
        "{who}最爱吃什么？",
        "请{who}来做客该端上哪道菜？",
        "麻婆豆腐 红烧肉 清蒸鱼 饺子 火锅 烤鸭 酸菜粉 小笼包".split(),
    ),
    (
        "{who}的面试在{x}",
        "{who}的面试在什么时候？",
        "{who}哪天去应聘？",
        "周一上午 周二下午 周三上午 周四晚上 周五下午 下周一 月底 星期天".split(),
    ),
    (
        "{who}的孩子叫{x}",
        "{who}的孩子叫什么？",
        "怎么称呼{who}家的小朋友？",
        "乐乐 豆豆 可心 浩然 思思 多多 一诺 子墨".split(),
    ),
    (
        "{who}会说{x}",
        "{who}会说哪种语言？",
        "跟{who}可以用什么外语交流？",
        "法语 日语 德语 西班牙语 俄语 韩语 粤语 阿拉伯语".split(),
    ),
    ("{who}的老家在{x}", "{who}的老家在哪里？", "{who}过年回什么地方？", CITIES),
]
OPENINGS = ["", "对了，", "说起来，", "忘了告诉你，", "我昨天才知道，", "顺便说一句，"]
ENDINGS = ["。", "，你帮我记一下。", "，以后别忘了提醒我。", "，挺有意思的。", "，我也是刚听说。"]
ANSWERS = ["好的，记住了。", "明白，谢谢你告诉我。", "原来如此！", "收到。", "嗯，听起来不错。"]
PASTIMES = [
    "昨天和{who}一起吃了顿饭，聊得很开心。",
    "{who}刚才打电话来，说了半天天气。",
    "下午在超市碰到{who}了，差点没认出来。",
    "今天又下雨了，什么时候能停？",
    "昨晚没睡好，楼上一直在放音乐。",
    "电梯又坏了，我爬了十层楼。",
]
SESSION = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question.

    Attributes:
        is_free: asked in other words.
        at: place of the only text that answers it.
    """

    text: str
    is_free: bool
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What a user tells.

    Attributes:
        facts: as sentences that stand alone.
        sessions: of (speaker, text); they tell the same in passing, among other things.
        about_facts, about_turns: questions, with places in `facts` or among all turns.
    """

    user: str
    facts: list[str]
    sessions: list[list[tuple[str, str]]]
    about_facts: list[Asked]
    about_turns: list[Asked]


def lives(users: int = 3, facts: int = 64, seed: int = 11) -> Iterator[Life]:
    """Make up what users tell; the same seed makes the same lives."""
    chance = random.Random(seed)
    for user in range(users):
        pairs = chance.sample([(topic, who) for topic in TOPICS for who in PEOPLE], facts)
        told = [
            (says.format(who=who, x=chance.choice(values)), shared, free, who)
            for (says, shared, free, values), who in pairs
        ]
        turns: list[tuple[str, str]] = []
        places = []
        for text, *_ in told:
            while chance.random() < 0.4:
                passing = chance.choice(PASTIMES).format(who=chance.choice(PEOPLE))
                turns += [("我", passing), ("助手", chance.choice(ANSWERS))]
            places.append(len(turns))
            said = chance.choice(OPENINGS) + text + chance.choice(ENDINGS)
            turns += [("我", said), ("助手", chance.choice(ANSWERS))]
        yield Life(
            user=f"用户{user}",
            facts=[f"{text}。" for text, *_ in told],
            sessions=[turns[at : at + SESSION] for at in range(0, len(turns), SESSION)],
            about_facts=_asked(told, list(range(len(told)))),
            about_turns=_asked(told, places),
        )


def _asked(told: list[tuple[str, str, str, str]], places: list[int]) -> list[Asked]:
    return [
        Asked(text=question.format(who=who), is_free=is_free, at=at)
        for (_, shared, free, who), at in zip(told, places, strict=True)
        for question, is_free in ((shared, False), (free, True))
    ]
