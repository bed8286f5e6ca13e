"""Whether another round is worth its cost: words, charts and a table."""

from __future__ import annotations

from collections.abc import Sequence

from bursar.campaign.results import RunResult, StoppingAdvice
from bursar.report.charts import Axis, Band, Chart, Mark, Point, Polyline, Rule, money_axis, score_axis, thing_look
from bursar.report.spending import round_name
from bursar.report.tables import Table
from bursar.report.wording import THIN, Money, Scale, counted, mean_scale, percent, round_phrase, sentence

SOURCES = {"dev": "development score", "audit": "score on audit slices"}
VERDICTS = {True: "yes", False: "no", None: "–"}


def stopping_words(result: RunResult) -> list[str]:
    """The advice, the predicted gain of another round, and when it was first advised to stop; may be empty."""
    main = result.main
    advised = main.stopping
    if not advised:
        return []
    latest, ahead = advised[-1], main.forecast
    if latest.gain is None or ahead is None:
        return [f"Not known yet: {latest.why}."]
    money, scale = Money.of(result), mean_scale(result)
    words = [
        f"{'Stop' if latest.stop else 'Go on'}: another {money.show(round(ahead.next_money))} should add "
        f"{scale.difference(latest.gain)} to the {SOURCES[ahead.source]} ({_between(latest, scale)}).",
        f"{sentence(latest.why)} ({scale.difference(result.config.stopping.least_gain)}).",
    ]
    first = next((at for at, advice in enumerate(advised) if advice.stop), len(advised))
    if first < len(advised) - 1:
        since = money.show(main.rounds[-1].spent - main.rounds[first].spent)
        words.append(f"The first advice to stop came after {round_phrase(main.rounds[first].round)}, {since} ago.")
    return words


def stopping_note(result: RunResult) -> str:
    """How to read the charts."""
    asked, ahead = result.config.stopping, result.main.forecast
    words = []
    if ahead is not None:
        words.append(f"Points show the {SOURCES[ahead.source]} of each round's model.")
        if ahead.curve is not None:
            words.append(
                f"The curve is fitted to them, and the band is its {_share(asked.interval)} interval for the next "
                "two rounds. Test scores are not used."
            )
    words.append(
        f"Lines show the share of pool items that each model labels like the one before. Predictions have settled once "
        f"all tasks stay above {_share(asked.agreement)} for {counted(asked.settled_rounds, 'round')}."
    )
    return " ".join(words)


def stopping_table(result: RunResult) -> Table:
    """The advice after every round."""
    main, money, scale = result.main, Money.of(result), mean_scale(result)
    rows = []
    for advice, record in zip(main.stopping, main.rounds, strict=False):
        gain = advice.gain
        agreed = (record.agreement or {}).values()
        predicted = ("–", "–") if gain is None else (scale.difference(gain), _between(advice, scale))
        settled = (percent(min(agreed), 1) if agreed else "–", VERDICTS[advice.settled])
        verdict = "stop" if advice.stop else "–" if gain is None else "go on"
        rows.append((round_name(record.round), money.brief(record.spent), *predicted, *settled, verdict))
    columns = ("After round", "Spent", "Predicted gain", "Interval", "Agreement", "Settled", "Advice")
    return Table(columns, tuple(rows))


def _forecast_chart(result: RunResult) -> Chart | None:
    """The scores that the advice is based on, the fitted curve, and its next two rounds."""
    ahead = result.main.forecast
    if ahead is None:
        return None
    money, scale = Money.of(result), mean_scale(result)
    source = sentence(SOURCES[ahead.source])

    def points(amounts: Sequence[float], scores: Sequence[float]) -> list[Point]:
        pairs = zip(amounts, scores, strict=True)
        return [Point(round(money.amount(units), 4), scale.value(score)) for units, score in pairs]

    scored, pairs = points(ahead.money, ahead.score), zip(ahead.money, ahead.score, strict=True)
    shown = [f"{scale.show(score)} at {money.show(round(units))}" for units, score in pairs]
    texts = zip(scored, shown, strict=True)
    marks = [Mark("arm-1", point.x, point.y or 0.0, text=f"{source}: {text}") for point, text in texts]
    words, lines, bands = f"{source} from {shown[0]} to {shown[-1]}", [], []
    if ahead.curve is not None and ahead.ahead is not None:
        coming, fitted = ahead.ahead, points(ahead.curve.money, ahead.curve.score)
        dashed, low, high = (points(coming.money, scores) for scores in (coming.score, coming.low, coming.high))
        lines = [Polyline("", "arm-1", fitted, shape="none"), Polyline("", "arm-1", dashed, "dash", "none")]
        bands = [Band("arm-1", [at.x for at in low], [at.y or 0.0 for at in low], [at.y or 0.0 for at in high])]
        scored += [*fitted, *dashed, *low, *high]
        last = scale.between(coming.low[-1], coming.high[-1])
        words += f", and {last} in two rounds"
    return Chart(
        f"{words}.",
        money_axis(money, [at.x for at in scored]),
        score_axis(scale, [at.y or 0.0 for at in scored]),
        source,
        "with a forecast for two rounds" if lines else "",
        lines=lines,
        bands=bands,
        marks=marks,
    )


def _agreement_chart(result: RunResult) -> Chart | None:
    """The share of items that each model labels like the one before it."""
    rounds = [(record, record.agreement) for record in result.main.rounds if record.agreement]
    if not rounds:
        return None
    money, lines = Money.of(result), []
    for at, name in enumerate(result.tasks, start=1):
        points = []
        for record, agreement in rounds:
            share = agreement[name]
            text = f"{sentence(name)}: {percent(share, 1)} at {money.show(record.spent)}"
            points.append(Point(money.amount(record.spent), round(100 * share, 4), text))
        lines.append(Polyline(name, thing_look(at), points, label=True))
    asked = 100 * result.config.stopping.agreement
    low = min([asked, *(100 * agreement[name] for _, agreement in rounds for name in result.tasks)])
    x = money_axis(money, [money.amount(record.spent) for record, _ in rounds])
    return Chart(
        "; ".join(line.points[-1].text for line in lines) + ".",
        x,
        Axis(max(0.0, low - 0.1 * (100 - low) - 1), 100.5, suffix=" %"),
        "Agreement with the previous model",
        f"settled above {_share(result.config.stopping.agreement)}",
        lines=lines,
        rules=[Rule("muted", (x.low, asked), (x.high, asked))],
    )


def stopping_charts(result: RunResult) -> list[Chart]:
    """The forecast and the agreement, if known."""
    return [chart for chart in (_forecast_chart(result), _agreement_chart(result)) if chart is not None]


def _share(share: float) -> str:
    return f"{100 * share:g}{THIN}%"


def _between(advice: StoppingAdvice, scale: Scale) -> str:
    """The interval of a gain, without its unit."""
    ends = (advice.low or 0.0, advice.high or 0.0)
    low, high = (f"{100 * end:.1f}" if scale.percent else f"{end:.3f}" for end in ends)
    return f"{low} to {high}"
