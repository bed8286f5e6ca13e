"""From a spreadsheet with any columns to a label in every row."""

import pandas as pd

import bursar

corpus = bursar.assistant_corpus(300, seed=3)
answers = {str(ticket): item.group for ticket, item in enumerate(corpus, start=1000)}  # in place of a person
rows = {"Ticket": list(answers), "Body": [item.text for item in corpus]}
pd.DataFrame(rows).to_excel("messages.xlsx", index=False)

messages = bursar.read("messages.xlsx", text="Body", id="Ticket", tasks={"topic": sorted(set(answers.values()))})
print(*messages.notes, sep="\n")
learner = bursar.ActiveLearner(messages, budget=60, batch_size=20)
while batch := learner.ask():
    learner.tell({item.id: answers[item.id] for item in batch})
labelled = learner.predict().to_frame()  # the label of each row, how sure the model is, and by whom
labelled.to_csv("labelled.csv", index=False)
print(labelled["topic by"].value_counts().to_dict())
