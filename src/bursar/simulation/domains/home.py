"""Devices of the home."""

from __future__ import annotations

from bursar.simulation.domains.intent import Intent

HOME = (
    Intent(
        "turn_on",
        "home",
        weight=5.0,
        urgency=0.35,
        lines="""
        turn on/prt (obj the {device})
        turn on/prt (obj the {device} (nmod in the {room}))
        turn on/prt (obj the {room}/compound {device})
        switch on/prt (obj the {room}/compound {device})
        turn (obj the {device}) on/prt (~obl in the {room})
        = {room}/compound {device=light} on/advmod please
        turn on/prt (obj the {device} (conj and the {device})) (~obl in the {room})
        start (obj the {device}) (~obl at {time})
        = it's dark (obl in the {room}) (parataxis turn on/prt (obj the {device=light}))
        turn (obj the {device}) on/prt +when
        run (obj the {device}) (obl for {duration})
        = let (ccomp there/expl be/cop light (nmod in the {room}))
        power up/prt (obj the {device} (nmod in the {room}) (conj and the {device} (nmod in the {room})))
        get (obj the {device}) going/xcomp (~obl by {time})
        set (obj the {device}) (xcomp running) (~obl in the {room})
        wake up/prt (obj the {room}/compound {device})
        = i can't see (obj anything) (obl in the {room})
        """,
    ),
    Intent(
        "turn_off",
        "home",
        weight=3.6,
        urgency=0.36,
        lines="""
        turn off/prt (obj the {device})
        turn off/prt (obj the {room}/compound {device})
        turn off/prt (obj the {device} (nmod in the {room}))
        switch off/prt (obj the {device})
        turn (obj the {device}) off/prt (~obl in the {room})
        turn off/prt (obj everything) (~obl in the {room})
        stop (obj the {room}/compound {device})
        = {room}/compound {device=light} off/advmod
        turn off/prt (obj the {device}) (~obl in {duration})
        shut off/prt (obj the {device} (nmod in the {room}) (conj and the {device} (nmod in the {room})))
        make sure/xcomp (ccomp (nsubj the {device=light}) are/cop *off) +when?
        cut (obj the {device}) (~obl at {time})
        = (nsubj the {device}) (obl in the {room}) doesn't/aux need (xcomp to/mark be *on) (advmod any/advmod *more)
        kill (obj the {device=light}) (~obl in the {room})
        turn (obj the {device}) off/prt +how_often
        """,
    ),
    Intent(
        "adjust_light",
        "home",
        weight=2.4,
        urgency=0.24,
        lines="""
        dim (obj the {device=light}) (~obl in the {room})?
        set (obj the {device=light}) (obl to {level})
        dim (obj the {room}/compound {device=light}) (obl to {level})
        make (obj the {device=light}) {color}/xcomp (~obl in the {room})?
        turn (obj the {device=light}) {color}/xcomp
        change (obj the {device=light} (nmod in the {room})) (obl to {color})
        brighten (obj the {room})
        = it's (advmod too) bright (obl in the {room}) (parataxis set it (obl to {level}))
        turn (obj the {device=light}) down|up/prt (obl to {level})
        = (nsubj the {device=light}) is/cop too bright|dim (parataxis make it {color}/xcomp)
        set (obj the {room}/compound {device=light}) (obl to {color}) (~obl at {time})
        """,
    ),
    Intent(
        "set_temperature",
        "home",
        weight=2.3,
        urgency=0.34,
        lines="""
        set (obj the thermostat) (obl to {level=temperature})
        set (obj the temperature) (obl to {level=temperature}) (~obl in the {room})?
        turn (obj the heat) up|down/prt (obl to {level=temperature})?
        make (obj it) warmer|cooler|colder/xcomp (~obl in the {room})
        = it's (advmod too) cold|hot (obl in the {room}) (parataxis set it (obl to {level=temperature}))
        keep (obj the {room}) (obl at {level=temperature}) (~obl until {time})?
        heat|cool (obj the {room}) (obl to {level=temperature}) (~obl by {time})
        change (obj the heat) (obl to {level=temperature}) +when
        = (nsubj the {room}) is/cop freezing|boiling (parataxis set it (obl to {level=temperature}))
        set (obj the {device=warmer}) (obl to {level=temperature})
        lower|raise (obj the temperature) (obl in the {room}) (obl by {level=temperature})
        """,
    ),
    Intent(
        "lock_door",
        "home",
        weight=0.7,
        urgency=0.58,
        lines="""
        lock (obj the {device:door=door})
        = is/aux (nsubj the {device:door=door}) *locked
        lock (obj the {device:door=door} (conj and the {device:door=door})) (~obl at {time})?
        make sure/xcomp (ccomp (nsubj the {device:door=door}) is closed|locked)
        shut (obj the {device:door=door}) (~obl in {duration})?
        = did i close|lock (obj the {device:door=door})
        """,
    ),
)
