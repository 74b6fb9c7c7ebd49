"""Remember, recall, correct and forget: one folder, no network, no key.

Run it with `python examples/quickstart.py`.

Prints:
    What can Alice not eat? -> Alice is allergic to peanuts. 0.90
       because {'cosine': 3.06, 'late': 2.63}
    爱丽丝早上喝什么？ -> 爱丽丝每天早上喝绿茶。 0.93
       because {'late': 3.89, 'cosine': 2.69}
    Where now? Alice lives in Nice.
       ADD None -> Alice lives in Lyon.
       UPDATE Alice lives in Lyon. -> Alice lives in Nice.
    Bob sees []
    Forgotten: 3 records, 3 vectors, complete: True
    Alice sees []
"""

import tempfile

from commonplace import Memory, Scope

alice, bob = Scope(user_id="alice"), Scope(user_id="bob")

with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
    memory.add("Alice is allergic to peanuts.", alice)
    memory.add("爱丽丝每天早上喝绿茶。", alice)  # Alice drinks green tea every morning.
    city = memory.add("Alice lives in Lyon.", alice).changes[0].id

    for question in ("What can Alice not eat?", "爱丽丝早上喝什么？"):
        best = memory.search(question, alice)[0]
        print(f"{question} -> {best.record.text} {best.score:.2f}")
        parts = sorted(best.score_details.items(), key=lambda part: -part[1])
        print("   because", {name: round(part, 2) for name, part in parts[:2]})

    memory.update(city, "Alice lives in Nice.", alice)
    print("Where now?", memory.search("Which city does Alice live in?", alice)[0].record.text)
    for version in memory.history(city, alice):
        print("  ", version.event, version.previous, "->", version.text)

    print("Bob sees", memory.search("What can Alice not eat?", bob))

    receipt = memory.forget(alice)
    records, vectors = receipt.removed["graph.records"], receipt.removed["index.points"]
    print(f"Forgotten: {records} records, {vectors} vectors, complete: {receipt.complete}")
    print("Alice sees", memory.search("What can Alice not eat?", alice))
