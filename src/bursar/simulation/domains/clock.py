"""Alarms and timers."""

from __future__ import annotations

from bursar.simulation.domains.intent import Intent

CLOCK = (
    Intent(
        "set_alarm",
        "alarm",
        weight=8.5,
        urgency=0.38,
        lines="""
        set (obj an alarm) (obl for {time})
        wake me up/prt (~obl at {time})
        set (obj an alarm (nmod for {time})) (~obl:tmod {date})
        set|create|make (obj an alarm) +when
        wake|get me up/prt +when
        = alarm (nmod for {time}) (obl:tmod {date})?
        set (obj my|the {label=alarm_name}/compound alarm) (obl to|for {time})
        = i need (xcomp to/mark be/cop *up|awake) (~obl by {time}) (~obl:tmod {date})?
        set (obj an alarm) +how_often
        wake me +how_often
        put on/prt (obj an alarm (nmod for {time}) (conj and another *one (nmod for {time})))
        set (obj an alarm (acl called {label=alarm_name}/xcomp)) (obl for {time})
        = don't let me (ccomp sleep (obl past {time})) (~obl:tmod {date})?
        change|move (obj my {label=alarm_name}/compound? alarm) (obl from {time:old}) (obl to {time:new})
        make (obj my {label=alarm_name}/compound alarm) (xcomp go off/prt (obl at {time}))
        get me (advmod out) (obl of bed) (~obl by {time})
        = i overslept (obl:tmod yesterday) (parataxis set it/obj (obl to {time}))
        have (obj the alarm) (xcomp ring (obl in {duration}))
        rouse me (~obl at {time}) (obl for the {event})
        add (obj an {recurrence}/compound alarm) (~obl at {time})
        """,
    ),
    Intent(
        "cancel_alarm",
        "alarm",
        weight=2.2,
        urgency=0.34,
        lines="""
        cancel|delete|remove (obj my {time}/compound alarm)
        turn off/prt (obj my|the alarm) (obl for {time})?
        cancel|delete (obj all my alarms) +on_day?
        cancel|stop (obj the {label=alarm_name}/compound alarm)
        = i don't need (obj the {time}/compound alarm) (advmod any/advmod *more)
        get rid/xcomp (obl of my {label=alarm_name}/compound? alarm) (~obl for {date})?
        = no/det alarm (obl:tmod {date}) please
        = don't wake me up/prt (~obl at {time}) (~obl:tmod {date})?
        shut off/prt (obj whatever/det alarm (acl:relcl i set (obl for {time})))
        take off/prt (obj the {time}/compound alarm)
        = let me sleep/ccomp in/prt (~obl:tmod {date})
        """,
    ),
    Intent(
        "show_alarms",
        "alarm",
        weight=1.1,
        urgency=0.2,
        lines="""
        show|list me/iobj? (obj my alarms)
        = (obj what/det alarms) do i *have set/xcomp? +on_day?
        = when is/aux (nsubj my {label=alarm_name}/compound? alarm) *set (obl for {date})?
        = did i set (obj an alarm) (obl for {time}) (~obl:tmod {date})?
        = (obj what/det time) are you waking me/obj (~obl:tmod {date})?
        = is/aux (nsubj my alarm) *on (obl for {time})?
        tell me/iobj (ccomp when/advmod (nsubj my next/amod alarm) is/aux *ringing)
        check (ccomp if (nsubj my {label=alarm_name}/compound alarm) is/aux set)
        """,
    ),
    Intent(
        "start_timer",
        "timer",
        weight=5.5,
        urgency=0.52,
        lines="""
        set (obj a timer) (obl for {duration})
        set|start (obj a {duration=short_spell}/compound timer)
        start (obj a timer) (obl for {duration})
        = timer (nmod for {duration})
        set (obj the|a {label=timer_name}/compound timer) (obl for|to {duration})
        count down/prt (obl from {duration})
        give me/iobj (obj {duration}) (obl on the clock|timer)
        time (obj the {label=timer_name}) (obl for {duration})
        = (nsubj the {label=timer_name}) needs (obj {duration}) (parataxis set (obj a timer))
        tell|alert me (advcl when/mark {duration}/nsubj is/cop *up)
        = let me know/ccomp (~obl in {duration})
        = (obl about the {label=timer_name}/compound timer) set it (obl to {duration})
        remind me (obl in {duration}) (xcomp to/mark check (obj the {label=timer_name}))
        start (obj two/nummod timers (appos one (nmod for {duration}) (conj and one (nmod for {duration}))))
        put (obj {duration}) (obl on the timer)
        start counting/xcomp (obj {duration}) (obl for the {label=timer_name})
        add (obj {duration}) (obl to the {label=timer_name}/compound timer)
        """,
    ),
    Intent(
        "stop_timer",
        "timer",
        weight=1.5,
        urgency=0.5,
        lines="""
        stop|cancel (obj the timer)
        cancel|stop|delete (obj the {label=timer_name}/compound timer)
        turn off/prt (obj the {label=timer_name}/compound? timer)
        pause|reset (obj my {duration=short_spell}/compound? timer)
        = (nsubj the {label=timer_name}) is/cop done|ready (parataxis stop (obj the timer))
        = i don't need (obj the {duration=short_spell}/compound timer) (advmod any/advmod *more)
        shut (obj that {label=timer_name}/compound? timer) off/prt
        kill (obj all timers)
        """,
    ),
    Intent(
        "check_timer",
        "timer",
        weight=1.0,
        urgency=0.42,
        lines="""
        = (nsubj how/advmod much/amod time) is/cop *left (obl on the {label=timer_name}/compound? timer)
        check (obj the {label=timer_name}/compound? timer)
        = how/advmod *long (advcl until/mark (nsubj the {label=timer_name}) is/cop done|ready)
        tell me/iobj (obj the time (acl left)) (obl on the {duration=short_spell}/compound? timer)
        = (obj how/advmod many/amod minutes) does (nsubj the {label=timer_name}) still need
        = is/cop (nsubj the {label=timer_name}/compound timer) *done yet/advmod
        """,
    ),
)
