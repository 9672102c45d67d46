"""Detection of abstentions and empty results, apart from names with the same beginning.

`I don't know` abstains and `I Don't Know How She Does It` is a film: sentences are written in small letters, names
mostly in capitals, and a sentence states that something is not held, known or found.
"""

from __future__ import annotations

import re

_NOTHING = re.compile(
    r"\W*(?:无|無|(?i:なし|keine?|aucune?|ningun[oa]|nessun[oa]|nenhuma?|нет|none|n/a|null|nil|nothing|empty)|NA|"
    r"[Nn]ot applicable|[Ll]eft (?:blank|empty)|"
    r"(?:(?i:none|nothing)|[Nn]ot) (?:is |are )?"
    r"(?:needed|required|necessary|found|listed|named|mentioned|given|applicable)|"
    r"(?:[Tt]here (?:is|are) )?[Nn]o (?:\w+ ){0,2}(?:entit(?:y|ies)|paths?|relations?|quer(?:y|ies)|subgraph|request)"
    r"(?: (?:is|are|has|have|can|need\w*|required|named|left|to)\b.*)?)"
    r"(?:\W*|\s*(?:\s[-–—]|[:;,.])\s.*|\s*\(.*)|"
    r"\W*[Nn]one of (?:them|these|those|the (?:facts|entities|lines|answers|relations|paths|options|above))\b.*",
    re.DOTALL,
)

_HELD_IN = r"(?:facts?|graph|evidence|context|data|schema|information|lines?|results?|rows?)"
_DENIED = (
    r"(?:(?:do|does|did|is|are|was|were|has|have|can|could)(?:\s+not|n[’']t)|cannot|lacks?|lacking|nothing|neither|"
    r"fails?|no|insufficient)"
)
_SAYS = (
    r"(?:contain|hold|mention|sa[yi]|state|include|show|name|tell|provide|give|support|specif|answer|list|have|"
    r"identif|indicat|determin|suffic|enough|reveal|record|cover|address|describe|found|know|present|available|information|facts?\b|it\b)"
)
_ABSTAINS = re.compile(
    r"\W*(?:(?i:i(?:[’']m| am)\s+(?:very\s+)?)?(?i:sorry)\W+(?:but\s+)?|"
    r"(?i:unfortunately)\W+|(?i:based on|from|according to) [^,]*,\s*)?(?:"
    r"(?:(?i:i|we)\s*(?:am|[’']m|was|were|are|[’']re)\s+)?(?i:u)?(?:nable|not able|Not able)\s+to\b.*|"
    r"(?i:this|that)\s+(?:question\s+)?(?:cannot|can\s?not|can[’']t|could\s?n[o’']t)\s+be\b.*|"
    r"(?i:i|we|one)\s+(?:do\s*n[o'’]t|don[’']t|cannot|can[’']t|can not|could not|couldn[’']t|am unable to|"
    r"am not able to)(?:\W*|\s+(?:know|see|find|have|answer|say|tell|determine|confirm|give|provide|identify|name|"
    r"locate|verify|infer|conclude|establish|derive|extract)\b.*)|"
    r"(?i:i|we)\s+(?:have|found|see|find|know)\s+(?:no|nothing)\b.*|"
    r"(?i:(?:the\s+)?answer)\s+(?:is|can|could|was)\s*(?:not|n[o'’]t|unknown|unavailable|undetermined)\b.*|"
    r"(?i:unknown|unanswerable|undetermined|unclear|indeterminate|abstain(?:ed)?|idk|no idea)"
    r"(?:\W*|\s*\(.*\)\W*|\s*(?:\s[-–—]|[:;,.])\s.*)|"
    r"(?:(?i:it)\s+is\s+)?[Nn]ot\s+(?:found|known|available|answerable|sufficient|given|stated|specified|mentioned|"
    r"determinable|possible|clear|in\s+the|present|provided|supported|contained|listed)\b.*|"
    rf"(?:(?i:it)\s+is\s+)?[Nn]ot\s+enough(?:\W*|\s+{_HELD_IN}\b.*)|"
    r"[Ii]nsufficient\b.*|(?:(?i:it)\s+)?(?:[Cc]annot|[Cc]an\s?not|[Cc]an[’']t)\s+be\s+[a-z]+ed\b.*|"
    rf"(?:(?i:there)\s+(?:is|are)\s+)?(?i:no)\s+(?:[a-z]+\s+){{0,2}}(?:answers?|{_HELD_IN}|match|matches|entry)(?:\W*|\s+(?![A-Z]).*)|"
    r"(?i:no answers?)\W*|"
    rf"(?:[Nn]one|[Nn]either|[Nn]othing)\s+(?:(?:was|is|were|are)\s+(?:found|known|named|listed|given|stated|mentioned|there|said)\b.*|"
    rf"(?:of|in|found)\s+(?:the|these|those|this|my)\s+(?:\w+\s+)?{_HELD_IN}\b.*|found\W*|here\W*)|"
    rf"(?i:the|these|those|this|given|provided|retrieved|available)\s+(?:[a-z]+\s+){{0,3}}?{_HELD_IN}\b.*?\b{_DENIED}\s+(?:\w+\s+)?{_SAYS}.*|"
    rf"(?i:facts?|graph|evidence|context)\s+{_DENIED}\s+(?:\w+\s+)?{_SAYS}.*"
    r")",
    re.DOTALL,
)
_ABSTAINS_ELSEWHERE = re.compile(
    r"\W*(?:(?:keine? (?:antwort|angaben?|information)|unbekannt|nicht (?:gefunden|bekannt|enthalten)|"
    r"(?:aucune|pas de) (?:réponse|information)|inconnue?|non trouvée?|"
    r"(?:sin|ninguna|no hay) (?:respuesta|información)|desconocid[oa]|no se (?:puede|sabe|encuentra)|"
    r"nessuna (?:risposta|informazione)|sconosciut[oa]|(?:nenhuma|sem) (?:resposta|informação)|desconhecid[oa]|"
    r"нет ответа|неизвестно|"
    r"(?:(?:die|la|a|l[’'])\s*)?(?:antwort|fakten|daten|réponse|respuesta|risposta|resposta)\b.*\b(?:nicht|keine|pas|aucune|no|non|"
    r"não)|(?:les|los|i|os)\s+(?:faits|hechos|fatti|fatos)\b.*\b(?:pas|aucune|no|non|não))\b.*|"
    r"(?:无法|無法|不能|没有|沒有|未知|不知道|不明|無回答|わかりません|分かりません|該当なし|无答案|无结果).*)",
    re.IGNORECASE | re.DOTALL,
)


def is_nothing(text: str) -> bool:
    """True if a text only states that there is nothing: `None.`, `N/A`, `no further entities are needed`."""
    text = text.strip()
    return text in ("", "[]", "{}", "-", "—", "–", "∅", '""') or _NOTHING.fullmatch(text) is not None


def abstains(line: str) -> bool:
    """True if a line states that there is no answer: `The facts do not hold the answer.`, `Unknown`."""
    said = line.strip().strip("*_\"'()[]").strip()
    return is_nothing(line) or any(way.fullmatch(said) for way in (_ABSTAINS, _ABSTAINS_ELSEWHERE))
