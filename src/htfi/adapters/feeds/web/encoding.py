"""Bytes of an XML or HTML document into text: what the document, its sender and its bytes say of their encoding."""

import codecs
import re

_XML_ENCODING = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
_DECLARATION = re.compile(r"^\s*<\?xml[^>]{0,400}\?>")
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._-]{1,40})", re.IGNORECASE)
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_BARE_AMPERSAND = re.compile(r"&(?!(?:#[0-9]{1,7}|#x[0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{0,31});)")
_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NUMBER = re.compile(r"&#(x[0-9a-fA-F]{1,6}|[0-9]{1,7});")
_HEAD_BYTES = 2048
_TEXT_ENCODINGS = re.compile(
    r"utf|ascii|iso|latin|cp\d|windows|koi|mac|gb|big5|euc|shift|sjis|johab|hz|8859", re.I
)


def decode_xml(body: bytes, charset: str = "") -> tuple[str, str]:
    """The text without its declaration, and how it was read."""
    found = _XML_ENCODING.match(body[:_HEAD_BYTES])
    text, encoding = _decode(body, [charset, found[1].decode() if found else ""])
    return _DECLARATION.sub("", text, count=1), encoding


def decode_html(body: bytes, charset: str = "") -> str:
    found = _META_CHARSET.search(body[:_HEAD_BYTES])
    return _decode(body, [charset, found[1].decode() if found else ""])[0]


def repair_xml(text: str) -> str:
    """Bare ampersands escaped, characters that XML forbids left out."""
    return _BARE_AMPERSAND.sub("&amp;", _NUMBER.sub(_allowed, _FORBIDDEN.sub("", text)))


def _allowed(number: re.Match[str]) -> str:
    digits = number[1]
    code = int(digits[1:], 16) if digits[0] == "x" else int(digits)
    return "" if code > 0x10FFFF or _FORBIDDEN.match(chr(code)) else number[0]


def charset_of(content_type: str) -> str:
    """'text/xml; charset=utf-8' → 'utf-8'."""
    _, _, rest = content_type.lower().partition("charset=")
    return rest.split(";")[0].strip().strip("\"'")[:40]


def _decode(body: bytes, stated: list[str]) -> tuple[str, str]:
    """By its mark, by UTF-8 where it is that, by what is stated; what then remains is read as Windows-1252."""
    for mark, encoding in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace"), encoding
    if body[:4] in (b"<\0?\0", b"<\0r\0", b"<\0f\0"):
        return body.decode("utf-16-le", "replace"), "utf-16-le"
    if body[:4] in (b"\0<\0?", b"\0<\0r", b"\0<\0f"):
        return body.decode("utf-16-be", "replace"), "utf-16-be"
    shifted = [name for name in stated if name.lower().startswith(("iso-2022", "hz"))]  # look like ASCII
    for name in (*shifted, "utf-8", *stated):
        try:
            if name.lower() != "utf-7" and _TEXT_ENCODINGS.search(name):
                return body.decode(name), codecs.lookup(name).name
        except (LookupError, UnicodeError, ValueError):
            continue
    return body.decode("cp1252", "replace"), "windows-1252"
