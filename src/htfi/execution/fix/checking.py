"""Checks a message against the dictionary: the first fault, as the session's Reject (35=3) names it."""

from enum import IntEnum

import msgspec

from htfi.execution.fix.dictionary import SESSION_TYPES, Dictionary, FieldRule, Group, Section
from htfi.execution.fix.messages import FixMessage

_FIRST_USER_TAG = 5000  # user-defined fields


class RejectReason(IntEnum):
    """SessionRejectReason (373)."""

    INVALID_TAG = 0
    REQUIRED_TAG_MISSING = 1
    NOT_DEFINED_FOR_TYPE = 2
    WITHOUT_VALUE = 4
    VALUE_OUT_OF_RANGE = 5
    INCORRECT_FORMAT = 6
    COMP_ID = 9
    SENDING_TIME = 10
    INVALID_MSG_TYPE = 11
    REPEATED_TAG = 13
    OUT_OF_ORDER = 14
    GROUP_OUT_OF_ORDER = 15
    GROUP_COUNT = 16
    OTHER = 99


REASON_TEXTS = {
    RejectReason.INVALID_TAG: "Invalid tag number",
    RejectReason.REQUIRED_TAG_MISSING: "Required tag missing",
    RejectReason.NOT_DEFINED_FOR_TYPE: "Tag not defined for this message type",
    RejectReason.WITHOUT_VALUE: "Tag specified without a value",
    RejectReason.VALUE_OUT_OF_RANGE: "Value is incorrect (out of range) for this tag",
    RejectReason.INCORRECT_FORMAT: "Incorrect data format for value",
    RejectReason.COMP_ID: "CompID problem",
    RejectReason.SENDING_TIME: "SendingTime accuracy problem",
    RejectReason.INVALID_MSG_TYPE: "Invalid MsgType",
    RejectReason.REPEATED_TAG: "Tag appears more than once",
    RejectReason.OUT_OF_ORDER: "Tag specified out of required order",
    RejectReason.GROUP_OUT_OF_ORDER: "Repeating group fields out of order",
    RejectReason.GROUP_COUNT: "Incorrect NumInGroup count for repeating group",
    RejectReason.OTHER: "Other",
}


class MessageFault(msgspec.Struct, frozen=True):
    """Why a message is refused: the reason, the tag (371), and words where the reason has none of its own."""

    reason: RejectReason
    tag: int | None = None
    text: str = ""


def check_message(
    message: FixMessage, dictionary: Dictionary, *, allow_user_fields: bool
) -> MessageFault | None:
    """The first fault of a message; None where it has none.

    A type of the standard that the dictionary does not describe passes with its header alone checked: who receives it
    answers with BusinessMessageReject (35=j).
    """
    rule = dictionary.messages.get(message.msg_type)
    if rule is None:
        if message.msg_type not in dictionary.types:
            return MessageFault(RejectReason.INVALID_MSG_TYPE)
        return _check_header(message, dictionary)
    by_tag = message.by_tag
    if not rule.required <= by_tag.keys():
        return MessageFault(RejectReason.REQUIRED_TAG_MISSING, min(rule.required - by_tag.keys()))
    fields, rules = message.fields, rule.fields
    seen: set[int] = {8, 9, 35}
    section = Section.HEADER
    at, end = 3, len(fields)
    while at < end:
        tag, value = fields[at]
        at += 1
        field = rules.get(tag)
        if field is None:
            if tag >= _FIRST_USER_TAG and allow_user_fields:
                continue
            return _undefined(tag, message, dictionary)
        if tag in seen:
            return MessageFault(RejectReason.REPEATED_TAG, tag)
        seen.add(tag)
        if field.section is not section:
            if field.section < section:
                return MessageFault(RejectReason.OUT_OF_ORDER, tag)
            section = field.section
        if not value or not field.is_format(value) or field.values:
            fault = _check_value(tag, value, field)
            if fault is not None:
                return fault
        if field.group is not None:
            after = _check_group(fields, at, int(value), tag, field.group)
            if isinstance(after, MessageFault):
                return after
            at = after
    return None


def _undefined(tag: int, message: FixMessage, dictionary: Dictionary) -> MessageFault:
    tags = dictionary.session_tags if message.msg_type in SESSION_TYPES else dictionary.tags
    defined = tag in tags
    return MessageFault(RejectReason.NOT_DEFINED_FOR_TYPE if defined else RejectReason.INVALID_TAG, tag)


def _check_value(tag: int, value: str, field: FieldRule) -> MessageFault | None:
    if not value:
        return MessageFault(RejectReason.WITHOUT_VALUE, tag)
    if not field.is_format(value):
        return MessageFault(RejectReason.INCORRECT_FORMAT, tag)
    if field.values and value not in field.values:
        if field.is_list and all(one in field.values for one in value.split(" ")):
            return None
        return MessageFault(RejectReason.VALUE_OUT_OF_RANGE, tag)
    return None


def _check_group(
    fields: list[tuple[int, str]], at: int, count: int, counter: int, group: Group
) -> int | MessageFault:
    """The position after the entries of a group. Each entry begins with the group's first field.

    A wrong count comes before what is wrong in an entry.
    """
    num_entries = 0
    seen: set[int] = set()
    inside: MessageFault | None = None
    while at < len(fields):
        tag, value = fields[at]
        field = group.members.get(tag)
        if field is None:
            break
        if tag == group.first:
            if num_entries and not group.required <= seen:
                inside = inside or MessageFault(RejectReason.REQUIRED_TAG_MISSING, min(group.required - seen))
            num_entries += 1
            seen = set()
        elif num_entries == 0:
            return MessageFault(RejectReason.GROUP_OUT_OF_ORDER, tag)
        elif tag in seen:
            return MessageFault(RejectReason.REPEATED_TAG, tag)
        seen.add(tag)
        fault = _check_value(tag, value, field)
        inside = inside or fault
        at += 1
        if field.group is not None:
            if fault is not None:
                return fault
            after = _check_group(fields, at, int(value), tag, field.group)
            if isinstance(after, MessageFault):
                return after
            at = after
    if num_entries != count:
        return MessageFault(RejectReason.GROUP_COUNT, counter)
    if num_entries and not group.required <= seen:
        inside = inside or MessageFault(RejectReason.REQUIRED_TAG_MISSING, min(group.required - seen))
    return inside or at


def _check_header(message: FixMessage, dictionary: Dictionary) -> MessageFault | None:
    rule = dictionary.header
    if not rule.required <= message.by_tag.keys():
        return MessageFault(RejectReason.REQUIRED_TAG_MISSING, min(rule.required - message.by_tag.keys()))
    for tag, value in message.fields[3:]:
        field = rule.fields.get(tag)
        if field is not None:
            fault = _check_value(tag, value, field)
            if fault is not None:
                return fault
    return None


def entries(message: FixMessage, dictionary: Dictionary, counter: int) -> list[dict[int, str]]:
    """The entries of a group of a checked message that is no group of another; fields of nested groups among them."""
    rule = dictionary.messages[message.msg_type].fields.get(counter)
    found: list[dict[int, str]] = []
    if rule is None or rule.group is None or counter not in message.by_tag:
        return found
    inside = _tags_inside(rule.group)
    begin = next(at for at, (tag, _) in enumerate(message.fields) if tag == counter) + 1
    for tag, value in message.fields[begin:]:
        if tag not in inside:
            break
        if tag == rule.group.first:
            found.append({})
        found[-1].setdefault(tag, value)
    return found


def _tags_inside(group: Group) -> set[int]:
    tags = set(group.members)
    for field in group.members.values():
        if field.group is not None:
            tags |= _tags_inside(field.group)
    return tags
