"""Is the default strategy cheaper than random labelling? A campaign simulated on a corpus whose labels are known."""

from pathlib import Path

import bursar

config = bursar.CampaignConfig(
    name="compare",
    tasks=["intent", "slots"],
    compare=["RANDOM"],
    corpus={"items": 3000, "pool_items": 1000},
    budget={"seed_items": 30, "per_round": 400, "rounds": 3},
    learner={"name": "probe"},  # fitted in milliseconds
)
run = bursar.Run(Path("runs/compare"), config)
result = bursar.run_campaign(run)
for name, arm in result.arms.items():
    for task, scores in arm.rounds[-1].test.items():
        print(f"{name:8} {task:8} {100 * scores[result.metrics[task]]:.1f}")
print("Report:", bursar.write_report(run))
