"""Whether the next round is worth its money, in a sentence, a chart and a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bursar.report.figures import Figure, base_layout, padded_range, plain, thing_colour
from bursar.report.spending import round_name
from bursar.report.tables import Table
from bursar.report.wording import THIN, Money, Scale, counted, listed, sentence

HEIGHT = 340  # in pixels
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
    lines = "Beneath, lines" if words else "Lines"
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


def stopping_figure(result: Mapping[str, Any]) -> Figure | None:
    """The scores with the curve through them and its next two rounds; how far models agree with the last, beneath."""
    main = result["arms"][result["strategy"]]
    ahead, agreed = main.get("forecast"), [r for r in main["rounds"] if r.get("agreement")]
    if not main.get("stopping") or (ahead is None and not agreed):
        return None
    money, scale = Money.of(result), _scale(result)
    above = _score_traces(ahead, money, scale) if ahead else []
    beneath = _agreement_traces(result, agreed, money) if agreed else []
    layout = base_layout(HEIGHT, right=16)
    layout["margin"] |= {"l": 64}
    amounts = [x for trace in above + beneath for x in trace["x"]]
    layout["xaxis"] |= {
        "title": {"text": "money spent", "standoff": 12},
        "tickprefix": plain(money.currency),
        "range": padded_range(amounts, 0.03, 0.01 * max(amounts) or 1.0),
        "anchor": "y2" if beneath else "y",
        "nticks": 7,
    }
    if beneath:
        least = min(y for trace in beneath for y in trace["y"])
        lower = {"title": {"text": "agreement", "standoff": 10}, "domain": [0, 0.32 if above else 1]}
        layout["yaxis2"] = layout["yaxis"] | lower | {"range": [least - 2, 100.8], "nticks": 3, "ticksuffix": " %"}
    if above:
        low, high = padded_range([y for trace in above for y in trace["y"]], 0.1, 1.0 if scale.percent else 0.01)
        suffix = " %" if scale.percent else ""
        layout["yaxis"] |= {"title": {"text": "score", "standoff": 10}, "domain": [0.42 if beneath else 0, 1]}
        layout["yaxis"] |= {"range": [low, high], "ticksuffix": suffix, "nticks": 5}
    return {"data": above + beneath, "layout": layout, "words": _words(result, ahead, agreed)}


def _score_traces(ahead: Mapping[str, Any], money: Money, scale: Scale) -> list[Figure]:
    def trace(part: Mapping[str, Any], what: str, **look: Any) -> Figure:
        amounts = [round(money.amount(units), 4) for units in part["money"]]
        scores = [scale.value(score) for score in part[what]]
        return {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "x": amounts, "y": scores, **look}

    traces = []
    if "curve" in ahead:
        edge = {"color": "--audit", "width": 1}
        traces = [
            trace(ahead["ahead"], "high", line=edge),
            trace(ahead["ahead"], "low", line=edge, fill="tonexty", fillcolor="--pool"),
            trace(ahead["curve"], "score", line={"color": "--arm-1", "width": 2}),
            trace(ahead["ahead"], "score", line={"color": "--arm-1", "width": 2, "dash": "dash"}),
        ]
    number = "%{y:.1f} %" if scale.percent else "%{y:.3f}"
    points = {
        "mode": "markers",
        "marker": {"color": "--arm-1", "size": 8, "line": {"color": "--paper", "width": 1.5}},
        "hoverinfo": "all",
        "hovertemplate": f"{number} at {plain(money.currency)}%{{x:,}}<extra></extra>",
    }
    return [*traces, trace(ahead, "score", **points)]


def _agreement_traces(result: Mapping[str, Any], rounds: list[Mapping[str, Any]], money: Money) -> list[Figure]:
    amounts = [money.amount(record["spent"]) for record in rounds]
    traces: list[Figure] = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": plain(name),
            "x": amounts,
            "y": [round(100 * record["agreement"][name], 4) for record in rounds],
            "yaxis": "y2",
            "line": {"color": thing_colour(at), "width": 2},
            "marker": {"color": thing_colour(at), "size": 6},
            "hovertemplate": "%{fullData.name}: %{y:.1f} % like the last round's<extra></extra>",
        }
        for at, name in enumerate(result["tasks"], start=1)
    ]
    asked = 100 * result["config"]["stopping"]["agreement"]
    line = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "yaxis": "y2"}
    look = {"color": "--muted", "width": 1.5, "dash": "dash"}
    return [*traces, {**line, "x": [amounts[0], amounts[-1]], "y": [asked, asked], "line": look}]


def _words(result: Mapping[str, Any], ahead: Mapping[str, Any] | None, agreed: list[Mapping[str, Any]]) -> str:
    scale, told = _scale(result), []
    if ahead:
        shown = [scale.show(score) for score in ahead["score"]]
        told.append(f"{SOURCES[ahead['source']]} from {shown[0]} to {shown[-1]}")
        if "ahead" in ahead:
            last = ahead["ahead"]
            between = f"{scale.show(last['low'][-1])} and {scale.show(last['high'][-1])}"
            told[-1] += f", and between {between} two rounds from now"
    if agreed:
        newest = agreed[-1]["agreement"]
        shares = [f"{100 * newest[name]:.1f}{THIN}% for {name}" for name in result["tasks"]]
        told.append(f"agreement with the last round's model {listed(shares)}")
    return f"Line chart against money spent: {'; '.join(told)}."


def _scale(result: Mapping[str, Any]) -> Scale:
    return Scale.of(*(task["metric"] for task in result["tasks"].values()))


def _share(share: float) -> str:
    return f"{100 * share:g}{THIN}%"


def _gain(score: float, scale: Scale) -> str:
    """A gain without its unit, for an interval."""
    return f"{100 * score:.1f}" if scale.percent else f"{score:.3f}"
