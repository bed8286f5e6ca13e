"""Sample tasks of every kind, with texts and their correct labels."""

from __future__ import annotations

SENTENCE = "book a table in New York for seven"
KINDS = {
    "intent": {"kind": "classification", "labels": ["alarm", "music", "table"]},
    "slots": {"kind": "tagging", "labels": ["time", "city", "person"]},
}
STRANGE = "🙂 e\u0301te\u0301 in 👩\u200d👧 אילת with 𝔘𝔫𝔦 friends"
EVERY = {"pos": {"kind": "tagging", "labels": ["NOUN", "VERB", "DET", "ADP"], "every_word": True}}
LINKS = {
    "terms": {"kind": "tagging", "labels": ["method", "task", "other"]},
    "rel": {"kind": "relations", "labels": ["used-for", "part-of"], "entity_types": ["method", "task"]},
}
LINKED = "CRFs are used for tagging and parsing"
TREE = {"tree": {"kind": "parsing", "labels": ["root", "nsubj", "obj", "det"]}}
PARSED = "the dog chased it"
SCORE = {"similarity": {"kind": "regression", "low": 0, "high": 5}}
MANY = 200
HOSTILE = "</script><script>hacked=1</script><img src=x onerror=hacked=1> & 👩\u200d👧 \u202eturned\u202c"
GOLD = [[[0, 1, "method"], [4, 5, "task"], "used-for"], [[6, 7, "task"], [4, 5, "task"], "part-of"]]
HEADS = [[2, "det"], [3, "nsubj"], [0, "root"], [3, "obj"]]
ALL = KINDS | LINKS | TREE | EVERY | SCORE
