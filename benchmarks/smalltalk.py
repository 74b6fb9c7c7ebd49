"""Made-up small talk in English and Chinese, of sentences whose parts are drawn at random.

A number always gives the same turn. The turns follow no thread: what counts is that many words
stand beside many others, as they do when people talk about their days.
"""

import random
from collections.abc import Mapping, Sequence

Parts = Mapping[str, Sequence[str]]

ENGLISH: Parts = {
    "turn": [
        "{hello} {told}", "{told}. {felt}.", "{asks}?", "{felt}! {asks}?", "{told}, and {then}.",
        "{reply} {told}. {asks}?", "{reply} {felt}.", "{advice}. {felt}.", "{told} because {why}.",
        "{fact}.", "{fact}. {then}.",
    ],
    "hello": [
        "Hey {name}!", "Hi {name}, good to hear from you.", "Good morning!", "Hello again, {name}.",
        "Long time no see, {name}!", "Guess what, {name}?", "You won't believe it:",
    ],
    "reply": [
        "Wow, {name}, that's great!", "Oh no, I'm sorry to hear that.", "Thanks, {name}!", "Sure.",
        "That sounds {quality}.", "Congratulations on the {thing}!", "Absolutely, I agree.",
        "No, not yet.", "Yes, we did.", "Really?", "Haha, same here.", "Thank you so much.",
    ],
    "told": [
        "{when} I {past} {whom} {place}", "{when} {name} and I {past} {object}",
        "I've been {doing} {object} since {time}", "my {kin} {past} {object} {when}",
        "we're going to {verb} {object} {soon}", "I finally {past} the {quality} {thing} {place}",
        "my {kin} gave me a {quality} {thing} for my birthday",
        "I spent {span} {doing} {object} {place}", "they closed the {thing} shop {place}",
        "I paid {number} dollars for the {thing}", "our {animal} {past} the {thing} again",
        "I signed up for a {topic} class {place}", "{name} told me about a {quality} {topic} event",
        "I read a {quality} book about {topic} {when}", "I took this picture of the {thing} {when}",
    ],
    "fact": [
        "I work as a {job} {place}", "My {kin} is a {job}", "I'm allergic to {food}",
        "My favourite food is {food}", "I have {number} {animal}s", "I moved here {span} ago",
        "I prefer {food} to {food}", "{name} lives {place} with a {animal}",
        "I'm learning {topic} to become a {job}",
        "The meeting about {topic} is at {number} o'clock",
        "We use {topic} for the {thing} project", "My {kin}'s name is {name}",
    ],
    "then": [
        "{name} {past} {object}", "we {past} {object} until {time}", "it was really {quality}",
        "I felt {mood} afterwards", "I want to {verb} {object} next", "nobody {past} anything",
        "the {thing} broke", "my {kin} got {mood}", "we all had {food}", "it started to rain",
    ],
    "felt": [
        "It makes me {mood}", "I'm so {mood} about the {thing}", "It was {quality}",
        "That must have been {quality}", "I felt {mood} when {name} {past} {object}",
        "{topic} really helps me to relax", "I can't wait to {verb} {object}",
        "It means a lot to my {kin}", "Nothing beats {food} with {name}",
    ],
    "why": [
        "my {kin} needed {object}", "the {thing} was too {quality}", "I was {mood}",
        "{name} asked me to", "I wanted to {verb} {object}", "it reminded me of my {kin}",
    ],
    "advice": [
        "You should {verb} {object} {place}", "Try {doing} {object} before {time}",
        "Don't {verb} the {thing} when you're {mood}", "Let's {verb} {object} {soon}",
        "Maybe your {kin} could {verb} {object}", "Remember to {verb} {object}",
    ],
    "asks": [
        "When did you {verb} {object}", "What did {name} {verb} {place}",
        "Do you still {verb} {object}", "How was the {thing}", "Where does your {kin} live now",
        "Who {past} {object} {when}", "How long have you been {doing} {object}",
        "What kind of {thing} do you have", "Why was your {kin} {mood}",
        "Did you {verb} {object} {when}", "Any plans for {soon}", "What got you into {topic}",
        "Which {food} do you like best", "How many {animal}s are there", "What's your {kin} up to",
        "Have you ever been {place}", "What does {name} do for a living",
    ],
    "when": [
        "yesterday", "last week", "last summer", "two days ago", "this morning", "on Monday",
        "last Friday", "in June", "a few weeks ago", "the other day", "last night", "on 5 May",
        "in 2022", "over the weekend", "last year", "at Christmas", "earlier today", "in October",
    ],
    "soon": [
        "tomorrow", "next month", "this weekend", "next Tuesday", "in the spring", "tonight",
        "soon", "next year", "on Saturday", "in August", "after work", "in two weeks",
    ],
    "time": [
        "midnight", "noon", "March", "2019", "dinner", "school", "the new year", "dawn", "lunch",
    ],
    "span": [
        "three hours", "the whole day", "two weeks", "seven years", "a month", "ages", "ten days",
    ],
    "number": ["two", "3", "four", "5", "12", "twenty", "50", "100", "seven", "1,500", "6.30"],
    "name": [
        "Anna", "Ben", "Carla", "David", "Emily", "Frank", "Grace", "Henry", "Isabel", "Jack",
        "Kate", "Leo", "Maria", "Nick", "Olivia", "Paul", "Rosa", "Sam", "Tina", "Victor", "Wendy",
        "Zoe", "Omar", "Priya", "Yuki", "Chen", "Fatima", "Lars", "Mike", "Laura", "Alex", "Hannah",
    ],
    "kin": [
        "mother", "father", "sister", "brother", "wife", "husband", "daughter", "son", "grandma",
        "uncle", "aunt", "cousin", "boss", "neighbour", "best friend", "colleague", "teacher",
        "girlfriend", "boyfriend", "roommate", "kids", "family", "dog", "doctor", "partner",
    ],
    "job": [
        "nurse", "teacher", "carpenter", "lawyer", "cook", "painter", "programmer", "driver",
        "pilot", "designer", "journalist", "counselor", "dentist", "gardener", "musician", "coach",
        "engineer", "farmer", "writer", "firefighter", "manager", "librarian", "photographer",
    ],
    "place": [
        "in Paris", "at the beach", "in the mountains", "downtown", "at home", "in the kitchen",
        "in Tokyo", "at the hospital", "at school", "in New York", "by the lake", "at the gym",
        "in the park", "at the airport", "in Canada", "at the museum", "in the forest", "at work",
        "on the train", "in our new apartment", "at the community center", "in Spain", "online",
        "at a concert", "in the garage", "at church", "in Berlin", "at the animal shelter",
    ],
    "whom": [
        "{name}", "my {kin}", "{name} and {name}", "an old friend", "some people", "the {job}",
    ],
    "object": [
        "the {thing}", "a {quality} {thing}", "my {kin}", "{food}", "our {animal}", "{topic}",
        "some {thing}s", "the {topic} group", "{name}'s {thing}", "a {thing} for my {kin}",
        "it all",
    ],
    "verb": [
        "visit", "buy", "paint", "fix", "see", "learn", "cook", "sell", "find", "finish", "start",
        "join", "watch", "build", "plan", "celebrate", "adopt", "write", "order", "clean", "bring",
        "help", "meet", "call", "drive", "leave", "teach", "win", "lose", "try", "share", "support",
    ],
    "past": [
        "visited", "bought", "painted", "fixed", "saw", "learned", "cooked", "sold", "found", "met",
        "finished", "started", "joined", "watched", "built", "planned", "celebrated", "adopted",
        "wrote", "ordered", "cleaned", "brought", "helped", "called", "drove", "left", "taught",
        "won", "lost", "tried", "shared", "supported", "went to see", "took", "made", "opened",
    ],
    "doing": [
        "visiting", "painting", "fixing", "learning", "cooking", "selling", "looking for", "making",
        "watching", "building", "planning", "writing", "cleaning", "teaching", "sharing", "playing",
        "collecting", "practicing", "studying", "designing", "running", "enjoying", "growing",
    ],
    "mood": [
        "happy", "sad", "proud", "nervous", "excited", "tired", "grateful", "angry", "relaxed",
        "lonely", "inspired", "worried", "sick", "busy", "stressed", "hopeful", "bored", "calm",
    ],
    "quality": [
        "beautiful", "old", "new", "amazing", "difficult", "tiny", "expensive", "cozy", "red",
        "blue", "funny", "scary", "delicious", "important", "strange", "wonderful", "broken",
        "fast", "wooden", "handmade", "famous", "local", "huge", "quiet", "awesome", "healthy",
        "free",
    ],
    "thing": [
        "guitar", "camera", "bike", "car", "painting", "book", "house", "garden", "phone", "laptop",
        "necklace", "photo", "movie", "song", "game", "tent", "boat", "bowl", "dress", "shoe",
        "letter", "ticket", "lamp", "chair", "cake", "trophy", "recipe", "project", "medal", "poem",
        "violin", "puzzle", "kite", "bridge", "sunset", "flower", "tree", "map", "clock", "store",
        "album", "sculpture", "sweater", "website", "app", "script", "podcast", "statue", "mug",
    ],
    "animal": [
        "dog", "cat", "rabbit", "horse", "parrot", "hamster", "turtle", "bird", "goldfish", "puppy",
        "snake", "cow", "kitten", "bear", "fox", "whale", "butterfly", "goat", "lizard",
    ],
    "food": [
        "pizza", "coffee", "chocolate", "peanuts", "soup", "sushi", "green tea", "ice cream",
        "cheese", "salad", "bread", "pasta", "steak", "strawberries", "milk", "noodles", "rice",
        "wine", "cookies", "fish", "honey", "eggs", "curry", "lasagna", "pancakes", "sugar",
    ],
    "topic": [
        "music", "yoga", "pottery", "photography", "football", "chess", "hiking", "adoption",
        "mental health", "swimming", "camping", "painting", "dancing", "politics", "climate change",
        "robotics", "gardening", "basketball", "volunteering", "poetry", "video games", "history",
        "marathon running", "cooking", "surfing", "machine learning", "theater", "art", "religion",
        "charity", "transgender rights", "fantasy novels", "marketing", "travel", "astronomy",
    ],
}  # fmt: skip

CHINESE: Parts = {
    "turn": [
        "{hello}{told}。", "{told}，{felt}。", "{asks}？", "{felt}！{asks}？", "{reply}{told}。",
        "{told}，因为{why}。", "{fact}。", "{fact}，{then}。", "{reply}{asks}？",
        "{advice}。{felt}。",
    ],
    "hello": ["你好，{name}！", "早上好，", "好久不见，{name}。", "{name}，你猜怎么着？", "嗨，"],
    "reply": [
        "太好了！", "真可惜，", "谢谢{name}。", "是的，", "没有，", "恭喜你！", "我同意，",
        "真的吗？",
    ],
    "told": [
        "{when}我{place}{verb}了{object}", "{when}我和{name}一起{verb}了{object}",
        "我的{kin}{when}{verb}了{object}", "我从{time}开始{verb}{topic}",
        "我们打算{soon}{verb}{object}", "{kin}送给我一个{quality}的{thing}",
        "我花了{number}块钱买{thing}", "我报名参加了{topic}班", "我家的{animal}把{thing}弄坏了",
        "{name}跟我说了{topic}的事", "我{when}看了一本关于{topic}的书",
    ],
    "fact": [
        "我在{city}当{job}", "我的{kin}是{job}", "我对{food}过敏", "我最喜欢吃{food}",
        "我养了{number}只{animal}", "我{number}年前搬到了{city}", "比起{food}我更喜欢{food}",
        "{name}住在{city}", "我的生日是{date}", "会议在{date}讨论{topic}", "我{kin}的名字叫{name}",
        "我每天{time}{verb}{object}", "项目用{topic}做的",
    ],
    "then": [
        "后来{name}{verb}了{object}", "我觉得很{mood}", "大家都吃了{food}", "下起了雨",
        "{thing}坏了",
    ],
    "felt": [
        "我很{mood}", "那个{thing}真{quality}", "{topic}让我放松", "我等不及要{verb}{object}了",
        "太{quality}了", "这对我的{kin}很重要", "一定很{quality}吧",
    ],
    "why": [
        "{kin}需要{thing}", "{thing}太{quality}了", "我很{mood}", "{name}让我去",
        "想{verb}{object}",
    ],
    "advice": [
        "你应该{place}{verb}{object}", "{soon}我们一起{verb}{object}吧", "别忘了{verb}{object}",
        "{mood}的时候不要{verb}{object}", "让你{kin}去{verb}{object}",
    ],
    "asks": [
        "你什么时候{verb}{object}的", "{name}{place}做了什么", "你还{verb}{object}吗",
        "那个{thing}怎么样", "你的{kin}现在住在哪里", "谁{when}{verb}了{object}",
        "你有什么样的{thing}", "为什么你{kin}很{mood}", "{soon}有什么计划", "你喜欢哪种{food}",
        "家里有几只{animal}", "{name}做什么工作", "你去过{city}吗", "会议是几点", "你对什么过敏",
        "你的生日是哪天",
    ],
    "when": [
        "昨天", "上周", "去年夏天", "前天", "今天早上", "星期一", "上个月", "六月", "周末", "昨晚",
        "春节", "刚才",
    ],
    "soon": [
        "明天", "下个月", "这个周末", "下周二", "春天", "今晚", "明年", "星期六", "八月", "下班后",
    ],
    "time": ["早上六点", "中午", "三月", "二〇一九年", "晚饭后", "上学时", "去年", "凌晨"],
    "date": ["五月三号", "下午三点", "十月一日", "星期五上午", "12月25日", "月底"],
    "number": ["两", "三", "5", "十", "一百", "七", "50", "几"],
    "name": [
        "小明", "李华", "王芳", "张伟", "刘洋", "陈静", "赵磊", "小红", "老周", "阿强", "林老师",
        "孙丽",
    ],
    "kin": [
        "妈妈", "爸爸", "姐姐", "弟弟", "妻子", "丈夫", "女儿", "儿子", "奶奶", "老板", "邻居",
        "朋友", "同事", "室友",
    ],
    "job": [
        "护士", "老师", "木匠", "律师", "厨师", "画家", "程序员", "司机", "设计师", "记者", "牙医",
        "工程师", "农民", "作家",
    ],
    "city": [
        "北京", "上海", "广州", "成都", "杭州", "台北", "东京", "巴黎", "西安", "南京", "重庆",
        "深圳",
    ],
    "place": [
        "在家里", "在海边", "在山上", "在厨房", "在医院", "在学校", "在公园", "在机场", "在{city}",
        "在健身房", "在图书馆",
    ],
    "object": [
        "{thing}", "{quality}的{thing}", "{food}", "{animal}", "{topic}", "{kin}的{thing}",
        "{name}的{thing}",
    ],
    "verb": [
        "买", "画", "修", "看", "学", "做", "卖", "找到", "完成", "参加", "建", "准备", "写",
        "打扫", "带来", "分享", "练习", "参观", "喜欢", "讨论", "丢", "试", "收到", "拍",
    ],
    "mood": [
        "高兴", "难过", "自豪", "紧张", "激动", "累", "感激", "生气", "担心", "忙", "无聊", "孤单",
    ],
    "quality": [
        "漂亮", "旧", "新", "难", "小", "贵", "舒服", "红色", "好吃", "重要", "奇怪", "有名",
        "安静", "健康", "便宜",
    ],
    "thing": [
        "吉他", "相机", "自行车", "汽车", "画", "书", "房子", "花园", "手机", "电脑", "项链",
        "照片", "电影", "歌", "游戏", "帐篷", "裙子", "鞋", "信", "票", "台灯", "椅子", "蛋糕",
        "奖杯", "钢琴", "杯子", "地图", "网站", "手表", "雨伞",
    ],
    "animal": ["狗", "猫", "兔子", "马", "鹦鹉", "仓鼠", "乌龟", "鸟", "金鱼", "小狗", "蛇"],
    "food": [
        "披萨", "咖啡", "巧克力", "花生", "汤", "寿司", "绿茶", "冰淇淋", "面条", "米饭", "饺子",
        "草莓", "牛奶", "火锅", "海鲜", "鸡蛋",
    ],
    "topic": [
        "音乐", "瑜伽", "陶艺", "摄影", "足球", "象棋", "爬山", "游泳", "露营", "跳舞", "环保",
        "机器人", "园艺", "篮球", "志愿者", "诗歌", "历史", "马拉松", "烹饪", "旅行", "机器学习",
        "书法",
    ],
}  # fmt: skip


def turn(number: int, parts: Parts = ENGLISH) -> str:
    """Make up what somebody says, one to three sentences."""
    chosen = random.Random(number)
    text = "{turn}"
    while "{" in text:
        before, _, rest = text.partition("{")
        name, _, after = rest.partition("}")
        text = before + chosen.choice(parts[name]) + after
    return text
