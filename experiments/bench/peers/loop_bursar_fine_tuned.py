"""The job with Bursar: the encoder is fine-tuned, as campaigns do by default."""

from loop import Given, main


def job(given: Given) -> float:
    """The accuracy on the test texts after the last round."""
    import bursar

    pool = bursar.read(given.pool, text="text", labels={"intent": "label"})
    test = bursar.read(given.test, text="text", labels={"intent": "label"})
    people = bursar.GoldAnnotator(pool)
    learner = bursar.ActiveLearner(
        pool.unlabelled(),
        learner="transformer",
        budget=len(given.start) + given.rounds * given.per_round,
        batch_size=given.per_round,
        seed_items=len(given.start),
        seed=given.seed,
    )
    while batch := learner.ask():
        learner.tell({item.id: people.annotate(item.id, item.tasks) for item in batch})
    return learner.evaluate(test)["intent"]["accuracy"]


if __name__ == "__main__":
    main(job)
