"""Things that people say, plan and do: messages, reminders, events, and the asides that a request comes with.

They borrow freely from the words of every intent, so that *play*, *call*, *timer* or *seven* do not give one away.
"""

from __future__ import annotations

from bursar.simulation.grammar import Grammar


def add_clauses(grammar: Grammar) -> None:
    """The symbols for whole clauses and for events."""
    _add_messages(grammar)
    _add_errands(grammar)
    _add_events(grammar)
    _add_asides(grammar)


def _add_messages(grammar: Grammar) -> None:
    grammar.define(
        "message",
        """
        i'm running late/advmod !.12
        i'm on my *way !.08
        i'll be home|late|early
        dinner/nsubj is ready !.06
        happy/amod birthday !-.05
        i'll call her|him|them|you/obj back/advmod (obl:tmod later|tomorrow|tonight)
        we need (obj <grocery> (conj and <grocery>))
        (nsubj the meeting) is/aux moved (obl to <hour>)
        can you pick up/prt (obj the kids) (obl at <hour>)? !.1
        i love you/obj
        i can't make it (obl:tmod tonight|tomorrow)
        (nsubj the flight) landed
        don't forget (obj the <grocery>)
        <errand>
        i'm stuck (obl in traffic) !.14
        *where are you
        there's no *rush !-.15
        we're out/advmod of/case <grocery>
        (nsubj the alarm) went off/advmod !.2
        we should play (obj tennis) (obl on <weekday>)
        did you book (obj the table|flight|hotel)
        it's raining (obl in <city>)
        i need (obj help) (advmod right/advmod *away) !.2
        set (obj the table) (obl for <small_number>)
        (nsubj the timer) is broken
        i'll order (obj <dish>) (obl for <small_number>)
        turn down/prt (obj the music)
        (nsubj the doctor) said (ccomp yes)
        i'm at/case the/det hospital !.3
        """,
        exponent=0.95,
    )


def _add_errands(grammar: Grammar) -> None:
    """What a reminder is about; the verbs are those of other intents."""
    grammar.define(
        "errand",
        """
        call (obj <contact>)
        buy|get (obj <grocery>)
        take out/prt (obj the trash)
        pay (obj the rent|bill|babysitter|plumber) !.06
        pick up/prt (obj <contact>) !.08
        take (obj my medicine|pills|vitamins) !.15
        water (obj the plants|garden)
        email|text (obj <contact>)
        turn off/prt (obj the <device>) !.06
        check (obj the oven|mail|weather|forecast|laundry)
        feed (obj the cat|dog|fish)
        book (obj a flight|table|room|hotel) (obl in <city>)?
        cancel (obj my <activity>/compound subscription|class)
        buy|order (obj <grocery>) (obl for <contact>)
        lock (obj the <door>) !.08
        return (obj the <gadget>)
        move (obj the car) !.08
        wish (obj <first_name>) (obj a happy/amod birthday)
        play (obj the lottery)
        send (obj the report) (obl to <contact>) !.08
        pack (obj the <gadget>)
        set (obj the table)
        wake up/prt (obj <first_name>)
        charge (obj the phone|car|drill)
        stretch (obl for <round_number>/nummod minutes)
        add (obj <small_number>/nummod eggs) (obl to the batter)
        """,
        exponent=0.85,
    )


def _add_events(grammar: Grammar) -> None:
    grammar.compounds(
        "topic",
        "budget,team,project,sales,design,marketing,planning,book club,school,safety,music,weather,travel,hiring,"
        "kitchen",
        exponent=0.7,
    )
    grammar.define(
        "event",
        """
        <topic>/compound meeting
        dentist/compound appointment
        lunch|dinner|breakfast|coffee
        birthday|party|recital (nmod for <first_name>)
        yoga|piano|cooking|swim|dance/compound class|lesson
        doctor's/poss appointment
        meeting
        <topic>/compound review|call|workshop|interview
        <activity>/compound party
        haircut
        call (nmod with <contact>)
        flight (nmod to <city>)
        parent/compound teacher/compound conference
        tennis|soccer|chess/compound match|practice
        date/compound night
        <small_number>/nummod o'clock/compound meeting
        movie (nmod with <first_name>)
        vet/compound visit
        wedding (nmod in <city>)
        """,
        exponent=1,
    )


def _add_asides(grammar: Grammar) -> None:
    """Clauses before or after a request that say nothing about the intent, though they sound as if they did."""
    grammar.define(
        "aside",
        """
        (nsubj the kids) are/cop asleep|hungry|home
        i'm cooking|driving|working
        (nsubj my hands) are/cop full|wet|dirty
        we're having (obj guests|people) over/advmod
        i'm in a hurry|rush !.25
        (nsubj my phone) is/cop dead
        it's late|early
        i *have (obj a meeting) (obl:tmod today|tonight) !.1
        (nsubj the oven|radio|tv) is loud|on|off
        i just got (advmod home)
        (nsubj the weather) is/cop awful|nice|terrible
        i'm leaving (obl in <round_number>/nummod minutes) !.2
        i can't find (obj my phone|calendar|list|keys)
        <first_name>/nsubj is/aux coming (obl at <hour>)
        (nsubj my flight) leaves (obl at <hour>) !.15
        i keep (xcomp forgetting)
        (nsubj this song) is/cop great|awful|loud
        (nsubj the alarm) didn't go off/prt
        it's cold|hot|dark (obl in *here)
        (nsubj my <kin>) asked (obj me)
        we're out/advmod of/case <grocery>
        i'm playing (obj chess|tennis) (obl with <first_name>)
        (nsubj my alarm) is/aux set (obl for <hour>)
        i ordered (obj <dish>)
        """,
        exponent=0.85,
    )
