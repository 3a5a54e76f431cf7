"""What the page says of other nodes, from whatever stands in peers.jsonl."""

import json

import pytest

from htfi.apps.cli.report.facts import NUM_LATEST, PEERS, PEERS_LISTED, peers_html, read_peers

NOW_NS = 1_700_000_000 * 10**9


def line(peer="cloud1", what="dead", words="not heard of", at_ns=NOW_NS) -> bytes:
    return json.dumps({"at_ns": at_ns, "peer": peer, "what": what, "words": words}).encode() + b"\n"


def test_a_run_without_other_nodes_has_no_section(tmp_path):
    assert peers_html(read_peers(tmp_path)) == ""
    (tmp_path / PEERS).write_bytes(b"")
    assert peers_html(read_peers(tmp_path)) == ""


def test_changes_are_counted_by_node_and_told_newest_first(tmp_path):
    (tmp_path / PEERS).write_bytes(
        line(what="joined") + line() + line(what="joined") + line("cloud2", "ill", "hot")
    )
    html = peers_html(read_peers(tmp_path))
    assert "<th>cloud1</th><td>3</td>" in html
    assert "joined 2, dead 1" in html
    assert html.index("hot") < html.index("not heard of")
    assert "2023-11-14 22:13:20" in html


BROKEN = [
    b"{\n", b"\xff\xfe\n", b"[]\n", b'{"at_ns":"x","peer":"a","what":"b","words":"c"}\n', b'{"peer":"cut of', b"\n"
]  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_line_is_counted_and_the_others_are_told(tmp_path, broken):
    (tmp_path / PEERS).write_bytes(line() + broken.rstrip(b"\n") + b"\n" + line(what="joined"))
    facts = read_peers(tmp_path)
    assert (facts.num_unreadable, len(facts.latest)) == (1, 2)
    assert "could not be read: 1" in peers_html(facts)


@pytest.mark.parametrize("at_ns", [-1, 1 << 62, 1 << 63])
def test_a_time_that_cannot_be_is_a_dash(tmp_path, at_ns):
    (tmp_path / PEERS).write_bytes(line(at_ns=at_ns))
    assert "<th>–</th>" in peers_html(read_peers(tmp_path))


def test_text_of_peers_is_never_markup_and_a_long_file_makes_a_short_section(tmp_path):
    evil = "<script>alert(1)</script>"
    lines = b"".join(line(f"{evil}{k}", evil, evil * 50) for k in range(500))
    (tmp_path / PEERS).write_bytes(lines)
    facts = read_peers(tmp_path)
    html = peers_html(facts)
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert len(facts.latest) == NUM_LATEST
    assert len(facts.counts) == PEERS_LISTED + 1
    assert len(html) < 100_000
