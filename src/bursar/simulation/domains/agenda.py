"""Calendar and reminders, messages and calls."""

from __future__ import annotations

from bursar.simulation.domains.intent import Intent

CALENDAR = (
    Intent(
        "create_reminder",
        "calendar",
        weight=6.0,
        urgency=0.44,
        lines="""
        remind me (xcomp to/mark {reminder=errand}) (~obl at {time})
        remind me (xcomp to/mark {reminder=errand})
        remind me (xcomp to/mark {reminder=errand}) +when
        set (obj a reminder (acl to/mark {reminder=errand})) +when
        remind me (~obl:tmod {date}) (xcomp to/mark {reminder=errand})
        remind me (obl about my|the {event}) (~obl at {time})?
        = don't let me (ccomp forget (xcomp to/mark {reminder=errand}))
        = i need (xcomp to/mark {reminder=errand}) (obl:tmod {date}) (parataxis remind me)
        remind me (xcomp to/mark {reminder=errand}) +how_often
        make (obj a note (acl to/mark {reminder=errand})) (~obl:tmod {date})
        remind me (obl about {reminder=item}) (advcl when/mark i get (advmod home))
        tell me (xcomp to/mark {reminder=errand}) (~obl in {duration})
        = i keep (xcomp forgetting (xcomp to/mark {reminder=errand}))
        ping me (obl before the {event}) (~obl in {duration})?
        nudge me (obl:tmod {date}) (xcomp to/mark {reminder=errand})
        put (obj a reminder) in/prt (xcomp to/mark {reminder=errand}) (~obl:tmod {date})
        have (obj me) (xcomp {reminder=errand}) (~obl by {time})
        """,
    ),
    Intent(
        "create_event",
        "calendar",
        weight=5.0,
        urgency=0.3,
        lines="""
        add (obj a {event}) (obl to my calendar) +when
        schedule (obj a {event}) +when
        put (obj a {event}) (obl on my calendar) (~obl for {date})
        schedule (obj a {event} (nmod with {contact})) +when
        book|plan (obj {event}) (obl with {contact}) +when
        create (obj an event (acl called {event}/xcomp)) +on_day (~obl at {time})?
        set up/prt (obj a {event}) (obl with {contact}) +when
        = i'm having (obj {event}) (obl with {contact}) +when
        block|hold (obj {duration}) (obl for {event}) +on_day
        pencil (obj {contact}) in/prt (obl for {event}) +when
        = i *have (obj a {event}) +when
        schedule (obj a {recurrence}/compound {event}) (~obl at {time})
        set (obj a {event}) (obl at the {place:venue=spot}) +when
        invite (obj {contact} (conj and {contact})) (obl to my {event}) +on_day
        mark (obj {date=day}) (obl as {event})
        call (obj a {event}) (obl for {time}) (obl with {contact})
        make (obj time) (obl for {event}) +when
        """,
    ),
    Intent(
        "query_calendar",
        "calendar",
        weight=3.5,
        urgency=0.28,
        lines="""
        = *what's (obl on my calendar|schedule) (obl:tmod {date})
        = (obj what) do i *have (obl:tmod {date})
        = *when is (nsubj my next/amod {event})
        = *when is (nsubj my {event})
        = (det what) time is (nsubj my {event} (nmod with {contact})?) +on_day?
        show me/iobj (obj my schedule|calendar|events) +on_day
        = am/cop i/nsubj *free|busy +when
        = do i *have (obj anything) +when
        = do i *have (obj a {event}) +on_day
        check (obj my calendar) +on_day
        = *where is (nsubj the {event})
        = who/nsubj is/aux coming (obl to the {event}) (obl:tmod {date})?
        read me/iobj (obj my agenda) (~obl for {date})
        = (advmod how/advmod *many) meetings|calls|appointments are there/expl +on_day
        = is/aux (nsubj {contact}) coming (obl to {event}) +on_day?
        """,
    ),
    Intent(
        "cancel_event",
        "calendar",
        weight=1.4,
        urgency=0.4,
        lines="""
        cancel (obj my {event}) +on_day?
        delete|remove (obj the {event}) (obl from my calendar)
        cancel (obj the|my {event} (nmod with {contact})) +on_day?
        = i can't make (obj my {time}/compound {event}) (parataxis cancel it)
        clear (obj my calendar|schedule) (~obl for {date})
        call off/prt (obj the {event}) +on_day?
        drop (obj {event}) (obl from my schedule)
        = (nsubj the {event}) is/aux not happening +on_day?
        """,
    ),
    Intent(
        "move_event",
        "calendar",
        weight=1.2,
        urgency=0.4,
        lines="""
        move (obj my {event}) (obl to {time:new})
        reschedule (obj the {event}) (obl for|to {date:new}) (obl at {time:new})?
        move (obj the {event}) (obl from {time:old}) (obl to {time:new})
        push back/prt (obj my {event}) (obl by {duration})
        change (obj the time (nmod of the {event})) (obl to {time:new})
        = can we *do (obj the {event}) (obl on {date:new=day}) instead
        shift (obj {event} (nmod with {contact})) (obl from {date:old=day}) (obl to {date:new=day})
        make (obj my {time:old}/compound {event}) (obl at {time:new}) instead
        """,
    ),
)

MESSAGES = (
    Intent(
        "send_message",
        "messages",
        weight=6.5,
        urgency=0.4,
        lines="""
        text (obj {contact}) (ccomp {message})
        tell (obj {contact}) (ccomp that/mark? {message})
        send (obj a message|text) (obl to {contact})
        text (obj {contact}) (ccomp that/mark {message})
        send (iobj {contact}) (obj a message|text) (acl saying (ccomp {message}))
        message (obj {contact}) (ccomp {message})
        send (obj a text|message) (obl to {contact}) (acl saying (ccomp {message}))
        let (obj {contact}) know/xcomp (ccomp that/mark? {message})
        = text|message (nmod to {contact}) (parataxis {message})
        send (obj {message}) (obl to {contact})
        ask (obj {contact}) (xcomp to/mark {message=errand})
        send (iobj {contact}) (obj a|an {app}/compound message)
        reply (obl to {contact}) (ccomp {message})
        tell (obj {contact} (conj and {contact})) (ccomp that/mark {message})
        write (obj {contact}) (ccomp {message}) (obl on {app})
        remind (obj {contact}) (ccomp that/mark {message})
        shoot (iobj {contact}) (obj a text) (advcl about/mark {message=errand})
        = {contact}/nsubj should/aux know (ccomp that/mark {message})
        text (obj {contact}) (obj my {event}/compound time)
        use (obj {app}) (xcomp to/mark tell (obj {contact}) (ccomp {message}))
        email (obj {contact}) (obl about the {event})
        """,
    ),
    Intent(
        "read_messages",
        "messages",
        weight=1.8,
        urgency=0.3,
        lines="""
        read (obj my messages)
        read me/iobj (obj the last|new/amod message (nmod from {contact:sender}))
        = (obj what) did {contact:sender}/nsubj say|write (obl about the {event})
        = do i *have (obj any new/amod messages)
        = did {contact:sender}/nsubj text|call me/obj back/advmod?
        check (obj my {app}) (obl for messages (nmod from {contact:sender}))?
        show|read me/iobj (obj my unread/amod texts|messages) (obl from {date})?
        = any/det word (nmod from {contact:sender}) +on_day?
        open (obj the text (nmod about the {event}))
        = has/aux {contact:sender}/nsubj replied (obl on {app})?
        """,
    ),
    Intent(
        "make_call",
        "messages",
        weight=4.5,
        urgency=0.48,
        lines="""
        call (obj {contact})
        call (obj {contact}) (obl on speaker)?
        phone|dial|ring (obj {contact})
        make (obj a call) (obl to {contact})
        get (obj {contact}) (obl on the phone|line)
        call (obj {contact}) (obl on {app})
        = i need|want (xcomp to/mark talk|speak (obl to|with {contact}))
        start (obj a video/compound call (nmod with {contact}))
        call (obj {contact}) back/advmod
        put me through/prt (obl to {contact})
        call (obj the office|restaurant)
        redial (obj {contact})
        try (obj {contact}) (advmod again) (obl on {app})?
        give (iobj {contact}) (obj a ring|call) (~obl at {time})?
        connect me (obl with {contact})
        """,
    ),
)
