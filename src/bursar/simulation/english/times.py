"""Clock times, dates, durations and recurrences, in the many ways in which people say them."""

from __future__ import annotations

from bursar.simulation.grammar import Grammar


def add_times(grammar: Grammar) -> None:
    """The symbols that tell when, how long and how often."""
    _add_numbers(grammar)
    _add_clock_times(grammar)
    _add_dates(grammar)
    _add_spells(grammar)
    _add_adjuncts(grammar)


def _add_numbers(grammar: Grammar) -> None:
    """The same few words serve as times, quantities, levels and track numbers: only their place tells which."""
    grammar.compounds("hour", "seven,six,eight,nine,ten,five,four,three,two,eleven,one,twelve", exponent=0.85)
    grammar.compounds("hour_digit", "7,6,8,9,10,5,4,3,2,11,1,12", exponent=0.85)
    grammar.compounds("minute", "thirty,fifteen,forty five,twenty,ten,fifty,twenty five,forty,thirty five,fifty five")
    grammar.compounds("minute_digit", "30,15,45,20,10,50,25,40,35,55")
    grammar.compounds(
        "small_number", "two,three,one,four,ten,five,six,a dozen,eight,seven,twelve,twenty,nine,eleven,2,3,4,10,6"
    )
    grammar.compounds("several", "two,three,four,six,ten,five,2,3,seven,eight,4")
    grammar.compounds(
        "round_number", "ten,five,twenty,fifteen,thirty,forty five,two,three,ninety,forty,eight,seven,twelve,10,20,5,45"
    )
    grammar.compounds("ordinal", "first,fifteenth,third,tenth,second,twentieth,fifth,seventh,twelfth,thirtieth,fourth")
    grammar.compounds("percentage", "fifty,thirty,twenty,ten,eighty,seventy,forty,sixty,ninety,twenty five,five,50,80")
    grammar.compounds("degrees", "twenty,seventy,twenty one,eighteen,sixty eight,nineteen,seventy two,ten,22,70,68")


def _add_clock_times(grammar: Grammar) -> None:
    grammar.define(
        "time",
        """
        <hour> am|pm/nmod
        <hour>
        <hour_digit> am|pm/nmod
        <hour> <minute>/nummod
        <hour_digit>
        <hour> <minute>/nummod am|pm/nmod
        <hour>/nummod o'clock
        half (nmod past <hour>)
        <hour> (nmod in the morning|evening|afternoon)
        noon
        <hour_digit> <minute_digit>/nummod
        quarter|ten|twenty|five (nmod to|past|before <hour>)
        midnight
        <hour>/nummod o'clock sharp/amod
        <hour_digit> <minute_digit>/nummod am|pm/nmod
        lunchtime
        <hour> (nmod at night)
        a quarter (nmod to|past <hour>)
        <hour>/nummod o'clock (nmod in the morning|evening|afternoon)
        sunrise
        half (nmod past <hour>) (nmod in the morning|evening|afternoon)
        bedtime
        a few/amod minutes (nmod after <hour>)
        the crack (nmod of dawn)
        twenty|ten|five/nummod minutes (nmod to|past|before <hour>)
        """,
        exponent=2.05,
    )


def _add_dates(grammar: Grammar) -> None:
    grammar.compounds("weekday", "Monday,Friday,Saturday,Sunday,Wednesday,Thursday,Tuesday", exponent=0.5)
    grammar.compounds(
        "month", "June,March,May,July,December,April,October,August,January,September,November,February", exponent=0.5
    )
    grammar.compounds("feast", "Christmas Eve,Valentine's Day,New Year's Eve,Labor Day,Mother's Day,Halloween,Easter")
    grammar.compounds("daypart", "morning,evening,afternoon,night", exponent=0.7)
    grammar.define(
        "date",
        """
        tomorrow !.08
        today !.2
        tonight !.22
        tomorrow/compound morning|evening|afternoon|night !.08
        this weekend
        next/amod <weekday> !-.06
        this morning|evening|afternoon !.22
        next/amod week !-.06
        the day (nmod after tomorrow)
        <weekday>/compound <daypart>
        this <weekday>
        next/amod month !-.14
        a week (nmod from <weekday>) !-.08
        the|this coming/amod <weekday>
        later/amod today !.18
        next/amod weekend !-.06
        two|three/nummod weeks (nmod from today) !-.1
        first/amod thing tomorrow/nmod !.12
        the end (nmod of the week|month) !-.08
        """,
        exponent=2.05,
    )
    grammar.define(
        "day",
        """
        <weekday>
        <month> <ordinal>/nummod !-.06
        the <ordinal> !-.04
        the <ordinal> (nmod of <month>) !-.06
        <weekday>/compound <daypart>
        <weekday> (nummod the <ordinal>)
        <feast> !-.04
        the first|second|last/amod <weekday> (nmod of|in <month>) !-.06
        """,
    )


def _add_spells(grammar: Grammar) -> None:
    grammar.define(
        "duration",
        """
        <round_number>/nummod minutes !.06
        an hour
        half/det an *hour
        <small_number>/nummod hours
        <round_number>/nummod seconds !.16
        a minute !.14
        an hour (conj and a half)
        <round_number>/nummod mins !.06
        <round_number>/nummod more/amod minutes !.06
        one/nummod hour (conj and <round_number>/nummod minutes)
        a quarter (nmod of an hour) !.04
        a few/amod minutes !.08
        <small_number>/nummod hours (conj and <round_number>/nummod minutes)
        (nummod <small_number> (conj and a half)) hours
        the next/amod <small_number>/nummod hours
        three/nummod quarters (nmod of an hour)
        a couple (nmod of hours)
        """,
        exponent=2.05,
    )
    grammar.define("short_spell", "<round_number>/nummod minute !.06\n<small_number>/nummod hour\nhalf/amod hour")
    grammar.define(
        "stay",
        """
        <small_number>/nummod nights
        a week
        <small_number>/nummod days
        the weekend
        two/nummod weeks
        """,
    )
    grammar.define(
        "recurrence",
        """
        every day
        every <weekday>
        every morning|evening|night
        weekdays
        every weekday
        daily
        every other/amod <weekday>
        every <small_number>/nummod hours
        twice/advmod a *week
        each <weekday>/compound <daypart>
        once/advmod a *month|week
        every weekend
        the first|last/amod <weekday> (nmod of every month)
        """,
    )


def _add_adjuncts(grammar: Grammar) -> None:
    """Groups that tell a verb when; most may be said first."""
    grammar.define(
        "when",
        """
        (~obl at {time})
        (~obl:tmod {date}) (~obl at {time})
        (~obl at {time}) (~obl:tmod {date})
        (~obl:tmod {date})
        (~obl on {date=day})
        (~obl on {date=day}) (~obl at {time})
        (~obl at {time}) (~obl on {date=day})
        (obl for {time}) (~obl:tmod {date})
        (~obl around {time})
        (~obl in {duration})
        (~obl for {date}) (~obl at {time})
        """,
        exponent=1.2,
    )
    grammar.define(
        "on_day",
        """
        (~obl:tmod {date})
        (~obl on {date=day})
        (~obl for {date})
        """,
    )
    grammar.define(
        "how_often",
        """
        (~obl:tmod {recurrence}) (~obl at {time})
        (~obl at {time}) (~obl:tmod {recurrence})
        (~obl:tmod {recurrence})
        """,
    )
