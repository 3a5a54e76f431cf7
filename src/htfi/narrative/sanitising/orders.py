# ruff: noqa: E501 -- a line is a family of phrases
"""Patterns of phrases that only someone writing to a model would use, in many languages.

They are tried on text in lower case (except the marks of templates), each only if one of its hints is among the words,
and repeat nothing without a bound.
"""

import re

_VERBS = (
    "ignore|disregard|forget|overlook|override|bypass|discard|omit|abandon|neglect|skip|delete|erase|unlearn"
)
_PRIOR = "previous|prior|above|preceding|earlier|former|foregoing|existing|original|initial|past|all|any|your|the|these|those|every"
_RULES = (
    "instructions?|prompts?|directives?|directions?|guidelines?|rules|commands|system messages?|constraints|restrictions|"
    "safeguards|guardrails|programming|training|filters?|polic(?:y|ies)|safety (?:protocols?|measures|rules)|context|input"
)
TEMPLATES = re.compile(
    r"<\|[a-z_ ]{2,30}\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|\bBEGIN_SYSTEM|"
    r"#{2,}\s*(?:system|instructions?|response|assistant|human|user|input)\b|"
    r"(?:^|\n)\s*(?:system|assistant|human|developer)\s*:\s|\"role\"\s*:\s*\"(?:system|assistant|user|developer)\"|"
    r"</?(?:system|assistant|tool_calls?|tool_use|function_calls?|instructions?|system_prompt|prompt|antml:\w+|invoke)\s*>|"
    r"</?(?:news|view|path|end)>|\[system\]\(#|```\s*(?:system|instructions?)\b",
    re.I,
)
OVERRIDES = re.compile(
    rf"(?:^|[.!?:;,\n\"'“(*>\-]\s*|\b(?:please|you|must|should|now|and|to|then|just|simply|kindly|immediately|can|will|system|note|or)\s+)"
    rf"(?:{_VERBS}|pay no attention to|do not follow|don['’]t follow|stop following|set aside|disobey)\s+"
    rf"(?:(?:{_PRIOR}|of|to|from|that|safety|system|content|ethical)\s+){{1,5}}(?:\w+\s+){{0,2}}?(?:{_RULES})\b"
    rf"|(?:^|[.!?:;\n\"'“(]\s*)(?:{_VERBS})\s+(?:everything|anything|what(?:ever)?|all)\s+(?:you\s+(?:were|have been|know|are)|(?:that\s+)?(?:was|is|has been)\s+(?:said|written|told)|above|before)",
)
ADDRESSED = re.compile(
    r"\b(?:reveal|print|repeat|output|show|display|leak|tell me|give me)\s+(?:me\s+)?(?:all\s+)?(?:of\s+)?(?:your|the)\s+(?:\w+\s+)?"
    r"(?:system prompt|instructions|initial prompt|hidden prompt|configuration|api keys?|training data|source code)|"
    r"\byou are (?:now |no longer )?(?:an? |the )?(?:[\w-]+ ){0,4}(?:ai|chatbot|assistant|language model|llm|gpt|dan|jailbroken)\b|"
    r"\b(?:act|behave|respond|answer|reply) as (?:an? |if you (?:are|were) )?(?:[\w-]+ ){0,3}(?:ai|chatbot|unfiltered|dan|terminal|without (?:rules|restrictions))\b|"
    r"\b(?:enter|enable|activate|switch to|you are in) (?:developer|debug|god|admin|jailbreak|dan|unrestricted|override|sudo) mode\b|"
    r"\bdo anything now\b|\bif you(?: are|'re) an? (?:ai|llm|language model|bot|assistant|machine|model|automated)|"
    r"\b(?:ai|language|large language) (?:models?|assistants?|agents?|systems?) (?:must|should|shall|reading this|processing this|that read)|"
    r"\bllms? (?:must|should|shall|reading|processing|are instructed)\b|\b(?:instructions?|note|message|attention) (?:to|for) (?:the |any |all )?(?:ai|llm|language model|model|assistant|bot)s?\b",
)
STEERING = re.compile(
    r"\b(?:rate|score|classify|label|mark|treat|report|regard|interpret|read|rank)\s+(?:this|it|the (?:item|news|article|headline|text|story|stock|company))\b.{0,40}?"
    r"\b(?:as|=|:|to)\s*['\"]?(?:very |strongly |extremely |a )?(?:positive|bullish|buy|negative|bearish|sell|strong|neutral|10\b|1\.0|maximum)|"
    r"\b(?:set|output|return|answer|respond with|print)\s+(?:the |your )?(?:sentiment|confidence|direction|score|signal|label|volatility)\s*(?:[=:]|to\b|as\b)\s*\S",
)
EXFILTRATION = re.compile(
    r"\b(?:send|post|forward|upload|append|exfiltrate|leak|email|transmit|submit)\b[^.\n]{0,60}\b(?:api keys?|passwords?|credentials|"
    r"conversation|portfolio|positions|system prompt|user data|secrets?|tokens?|private keys?|holdings)\b[^.\n]{0,60}"
    r"(?:https?://|\bto \S{1,60}@|\bwebhook\b|\burl\b|\bmy server\b|\bendpoint\b)",
)
FOREIGN = re.compile(
    # Dutch, Swedish, Danish, Norwegian; Catalan, Romanian; `address` knows the languages that most news come in
    r"\b(?:negeer|vergeet)\b.{0,40}\b(?:instructies|regels|opdrachten|aanwijzingen)|"
    r"\b(?:ignorera|ignorer|glöm|glem|se bort fra|bortse från)\b.{0,40}\b(?:instruktion|instruks|regler|anvisning)|"
    r"\b(?:ignoreu|ignorați|ignoră|uita)\b.{0,50}\b(?:instruccions|regole|instrucțiunile)|"
    # Finnish, Estonian, Polish, Czech, Hungarian, Turkish
    r"\b(?:unohda|ohita|jätä huomiotta|älä noudata)\b.{0,40}\b(?:ohje|sään|käsky)|\b(?:zignoruj|ignoruj|pomiń|zapomnij|zapomeň)\b.{0,40}\b(?:instrukc|poleceni|zasad|pokyn|příkaz|pravid)|"
    r"\b(?:hagyd figyelmen kívül|felejtsd el)\b.{0,40}\b(?:utasítás|szabály)|\b(?:talimat|komut|kural)\w*\b.{0,30}\b(?:yok say|unut|görmezden gel|dikkate alma)|"
    # Ukrainian, Greek, Bulgarian
    r"(?:ігнору|забудь|игнорирай|αγνόησ|ξέχασ).{0,40}(?:інструкц|вказівк|οδηγί|εντολ|κανόν|указания)|"
    # Hebrew, Persian, Indonesian, Vietnamese, Thai
    r"(?:نادیده).{0,30}(?:دستور)|(?:התעלם|שכח).{0,30}(?:הוראות|כללים|ההוראות)|"
    r"\b(?:abaikan|lupakan)\b.{0,30}\b(?:instruksi|perintah|aturan)|\b(?:bỏ qua|quên)\b.{0,30}(?:hướng dẫn|chỉ dẫn|lệnh|quy tắc)|(?:ละเว้น|เพิกเฉย|ลืม).{0,20}(?:คำสั่ง|คำแนะนำ|กฎ)",
)  # fmt: skip
PROMISES = re.compile(
    r"\b(?:guaranteed|risk[- ]free|sure[- ]fire|100% (?:sure|safe|guaranteed))\s+(?:\d[\d,.]*\s?(?:%|x)|profits?|gains?|returns? of \d|moon|win)|"
    r"\bbuy (?:it |now |this |them )*(?:before it(?:'s| is) too late|before (?:it|this) (?:moons|explodes|takes off|flies))|"
    r"garantierte?[rsn]? (?:gewinn|rendite|profit)|(?:gains?|profits?|rendement) garantis?|ganancias? garantizad|guadagn\w* garantit|lucros? garantid|"
    r"гарантирован\w* (?:прибыл|доход|рост)|稳赚|必涨|必漲|保证(?:收益|盈利|赚)|包赚|暴涨在即|必ず(?:上が|儲か)|確実に儲か|무조건 (?:오른|수익)|수익 보장",
)
_HINT_WORDS = {
    "overrides": "ignore disregard forget overlook override bypass discard omit abandon neglect skip delete erase unlearn "
    "attention follow following aside disobey",
    "foreign": "negeer vergeet ignorera ignorer glem ignoreu unohda ohita zignoruj ignoruj zapomnij felejtsd talimat komut "
    "kural abaikan lupakan uita se bort",
    "steering": "rate score classify label mark treat report regard interpret read rank set output return answer respond print",
    "exfiltration": "http https webhook url server endpoint",
    "addressed": "prompt prompts instructions instruction configuration key keys training source ai chatbot assistant "
    "assistants gpt dan jailbroken mode anything llm llms model models bot bots machine terminal unfiltered agents "
    "systems message note automated without",
    "promises": "guaranteed risk sure buy 100% garantiert garantierte garantierten garantierter garanti garantis "
    "garantizadas garantizada garantizado garantiti garantito garantidos garantido free",
}
HINTS = {name: frozenset(told.split(" ")) for name, told in _HINT_WORDS.items()}
CASHTAG = re.compile(r"\$[A-Za-z]{1,6}\b")
