"""Whether the next round is worth its money, in a sentence, a chart and a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bursar.report.charts import (
    Axis,
    Band,
    Chart,
    Ends,
    Mark,
    Point,
    Polyline,
    Rule,
    money_axis,
    score_axis,
    thing_look,
)
from bursar.report.spending import round_name
from bursar.report.tables import Table
from bursar.report.wording import THIN, Money, Scale, counted, sentence

SOURCES = {"dev": "development score", "audit": "score on audit slices"}


def stopping_words(result: Mapping[str, Any]) -> list[str]:
    """Go on or stop, what another round is expected to bring, and since when; empty where no round was scored."""
    told = result["arms"][result["strategy"]].get("stopping")
    if not told:
        return []
    newest, ahead = told[-1], result["arms"][result["strategy"]]["forecast"]
    if newest["gain"] is None:
        return [f"There is no telling yet: {newest['why']}."]
    money, scale = Money.of(result), _scale(result)
    between = f"{_gain(newest['low'], scale)} to {_gain(newest['high'], scale)}"
    words = [
        f"{'Stop' if newest['stop'] else 'Go on'}: another {money.show(round(ahead['next_money']))} are expected to "
        f"bring {scale.difference(newest['gain'])} of {SOURCES[ahead['source']]} ({between}).",
        f"{sentence(newest['why'])} ({scale.difference(result['config']['stopping']['least_gain'])}).",
    ]
    first = next((at for at, advice in enumerate(told) if advice["stop"]), len(told))
    if first < len(told) - 1:
        rounds = result["arms"][result["strategy"]]["rounds"]
        since = money.show(rounds[-1]["spent"] - rounds[first]["spent"])
        after = round_name(told[first]["round"])
        words.append(f"The first advice to stop came after round {after}, {since} ago.")
    return words


def stopping_note(result: Mapping[str, Any]) -> str:
    """How to read the chart."""
    asked, ahead = result["config"]["stopping"], result["arms"][result["strategy"]]["forecast"]
    words = []
    if ahead is not None:
        fitted = "."
        if "curve" in ahead:
            likely = f"{_share(asked['interval'])} probability"
            fitted = (
                f", with the curve that fits them: the band holds its next two rounds with {likely}. Test scores have "
            )
            fitted += "no say in it."
        words.append(f"Points are the {SOURCES[ahead['source']]} of each round's model{fitted}")
    lines = "Beside, lines" if words else "Lines"
    words.append(
        f"{lines} are how much of some pool items each model labels like the one before it: predictions have settled "
        f"when all stay above {_share(asked['agreement'])} for {counted(asked['settled_rounds'], 'round')}."
    )
    return " ".join(words)


def stopping_table(result: Mapping[str, Any]) -> Table:
    """The advice as it was after every round."""
    main, money, scale = result["arms"][result["strategy"]], Money.of(result), _scale(result)
    rows = []
    for advice, record in zip(main.get("stopping", ()), main["rounds"], strict=False):
        gain = between = "–"
        if advice["gain"] is not None:
            gain = scale.difference(advice["gain"])
            between = f"{_gain(advice['low'], scale)} to {_gain(advice['high'], scale)}"
        agreed = (record.get("agreement") or {}).values()
        rows.append(
            (
                round_name(advice["round"]),
                money.brief(record["spent"]),
                gain,
                between,
                f"{100 * min(agreed):.1f}{THIN}%" if agreed else "–",
                {True: "settled", False: "no", None: "–"}[advice["settled"]],
                "stop" if advice["stop"] else "–" if advice["gain"] is None else "go on",
            )
        )
    columns = ("After round", "Money spent", "Next round brings", "Between", "Agreement", "Settled", "Advice")
    return Table(columns, tuple(rows))


def forecast_chart(result: Mapping[str, Any]) -> Chart | None:
    """The scores that the advice goes by, the curve through them, and its next two rounds."""
    ahead = result["arms"][result["strategy"]].get("forecast")
    if ahead is None:
        return None
    money, scale = Money.of(result), _scale(result)
    source = sentence(SOURCES[ahead["source"]])

    def places(part: Mapping[str, Any], what: str) -> list[Ends]:
        pairs = zip(part["money"], part[what], strict=True)
        return [(round(money.amount(units), 4), scale.value(score)) for units, score in pairs]

    shown = [
        f"{scale.show(score)} at {money.show(round(units))}"
        for units, score in zip(ahead["money"], ahead["score"], strict=True)
    ]
    marks = [
        Mark("arm-1", x, y, text=f"{source}: {text}")
        for (x, y), text in zip(places(ahead, "score"), shown, strict=True)
    ]
    lines, bands = [], []
    told = f"{source} from {shown[0]} to {shown[-1]}"
    reached = [(mark.x, mark.y) for mark in marks]
    if "curve" in ahead:
        fitted, dashed, low, high = (
            places(ahead["curve"], "score"),
            *(places(ahead["ahead"], what) for what in ("score", "low", "high")),
        )
        lines = [
            Polyline("", "arm-1", [Point(x, y) for x, y in fitted], shape="none"),
            Polyline("", "arm-1", [Point(x, y) for x, y in dashed], "dash", "none"),
        ]
        bands = [Band("arm-1", [x for x, _ in low], [y for _, y in low], [y for _, y in high])]
        reached += [*fitted, *dashed, *low, *high]
        last = ahead["ahead"]
        told += f", and between {scale.show(last['low'][-1])} and {scale.show(last['high'][-1])} two rounds from now"
    return Chart(
        f"{told}.",
        money_axis(money, [x for x, _ in reached]),
        score_axis(scale, [y for _, y in reached]),
        source,
        "and where it goes in the next two rounds" if lines else "",
        lines=lines,
        bands=bands,
        marks=marks,
    )


def agreement_chart(result: Mapping[str, Any]) -> Chart | None:
    """How far each model labels as the one before it."""
    rounds = [record for record in result["arms"][result["strategy"]]["rounds"] if record.get("agreement")]
    if not rounds:
        return None
    money, lines = Money.of(result), []
    for at, name in enumerate(result["tasks"], start=1):
        points = []
        for record in rounds:
            share = 100 * record["agreement"][name]
            text = f"{sentence(name)}: {share:.1f}{THIN}% like the model before, at {money.show(record['spent'])}"
            points.append(Point(money.amount(record["spent"]), round(share, 4), text))
        lines.append(Polyline(name, thing_look(at), points, label=True))
    asked = 100 * result["config"]["stopping"]["agreement"]
    low = min([asked, *(100 * record["agreement"][name] for record in rounds for name in result["tasks"])])
    x = money_axis(money, [money.amount(record["spent"]) for record in rounds])
    return Chart(
        "; ".join(line.points[-1].text for line in lines) + ".",
        x,
        Axis(max(0.0, low - 0.1 * (100 - low) - 1), 100.5, suffix=" %"),
        "Agreement with the model before",
        f"settled above {_share(result['config']['stopping']['agreement'])}",
        lines=lines,
        rules=[Rule("muted", (x.low, asked), (x.high, asked))],
    )


def stopping_charts(result: Mapping[str, Any]) -> list[Chart]:
    """The forecast and the agreement, where there is one."""
    return [chart for chart in (forecast_chart(result), agreement_chart(result)) if chart is not None]


def _scale(result: Mapping[str, Any]) -> Scale:
    return Scale.of(*(task["metric"] for task in result["tasks"].values()))


def _share(share: float) -> str:
    return f"{100 * share:g}{THIN}%"


def _gain(score: float, scale: Scale) -> str:
    """A gain without its unit, for an interval."""
    return f"{100 * score:.1f}" if scale.percent else f"{score:.3f}"
