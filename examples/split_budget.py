"""How many labels of each task should 150 euros buy, if tasks help each other and labels lose value?"""

from pathlib import Path

from bursar.allocation import exact, read_estimate_table, sensitivity

Path("tasks.toml").write_text("""
currency = "€"
[tasks.intent]
price = 0.05
beta = 0.6      # each block of 200 labels is worth 0.6 of the block before
block = 200
[tasks.slots]
price = 0.12
beta = 0.8
low = 0.7       # the rate is uncertain
high = 0.9
block = 200
[informativeness.slots]
intent = 0.4    # a label of slots advances intent by 0.4 labels of its own
""")
problem = read_estimate_table("tasks.toml").problem(150)
split = exact(problem)
print("labels:", dict(zip(problem.tasks, split.counts, strict=True)))
print("largest loss if one estimate is wrong:", round(sensitivity(split)[0].regret, 1))
