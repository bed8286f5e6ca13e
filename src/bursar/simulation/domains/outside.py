"""Weather and travel."""

from __future__ import annotations

from bursar.simulation.domains.intent import Intent

WEATHER = (
    Intent(
        "get_weather",
        "weather",
        weight=9.0,
        urgency=0.24,
        lines="""
        = *what's (nsubj the weather) (obl in {place})
        = *how's|what's (nsubj the weather) (obl in {place}) (obl:tmod {date})
        = *what's (nsubj the weather) (obl:tmod {date})
        = will/aux (nsubj it) {condition=precipitation} (obl:tmod {date})
        = is it/nsubj gonna/aux {condition=precipitation} (obl in {place}) +on_day?
        tell|give me/iobj (obj the forecast|weather) (obl for {place})?
        = *what's (nsubj the forecast) (obl for {date}) (obl in {place})?
        = weather (nmod in {place}) (obl:tmod {date})?
        = do i need (obj an umbrella|coat) (obl in {place})? (obl:tmod {date})
        = how cold|hot|warm is (nsubj it) (obl in {place}) (obl:tmod {date})?
        = is it/nsubj {condition} (obl in {place}) (advmod right/advmod *now)
        check (obj the weather) +on_day (obl in {place})?
        = will/aux (nsubj it) be/cop {condition} (obl at {time}) (obl in {place})?
        = *what's it/nsubj like/case (obl in {place}) +on_day?
        = should i bring|wear (obj a coat|jacket) (obl for the {event}) (obl in {place})?
        = any {condition=precipitation} (obl in {place}) +on_day
        = (obj what/det temperature) should i expect (obl in {place}) (obl at {time})?
        = how is/aux {place}/nsubj looking +on_day
        = can we play (obj tennis) (advmod outside) (obl in {place})? +on_day
        = will (nsubj my flight|drive|picnic) be fine|ok (obl with the {condition=precipitation}) (obl:tmod {date})
        """,
    ),
)

TRAVEL = (
    Intent(
        "get_directions",
        "travel",
        weight=3.4,
        urgency=0.42,
        lines="""
        get|give me/iobj (obj directions) (obl to {destination})
        navigate|drive (obl to {destination})
        take me (obl to {destination=address})
        = how do i get (obl to {destination})
        = how long (advcl to/mark get (obl to {destination}) (obl from {origin})?)
        find (obj the fastest|quickest/amod way|route) (obl to {destination=address})
        = how far is {destination}/nsubj (obl from {origin})?
        show me/iobj (obj the way|route) (obl from {origin}) (obl to {destination})
        = *where is (nsubj {destination=address})
        = *how's (nsubj the traffic) (obl to {destination}) +on_day?
        = i *have (xcomp to/mark be *there) (obl by {time}) (parataxis take me (obl to {destination=address}))
        = (obj what/det time) should i leave (obl for {destination=address}) (advcl to/mark arrive (obl by {time}))
        bring me home/advmod (obl from {origin=address})
        set (obj a course) (obl for {destination})
        """,
    ),
    Intent(
        "book_flight",
        "travel",
        weight=2.0,
        urgency=0.32,
        lines="""
        book (obj a flight) (obl to {destination=city})
        book (obj a flight) (obl from {origin=city}) (obl to {destination=city}) +on_day?
        find|get me/iobj (obj a flight) (obl to {destination=city}) +on_day
        = i need (obj a flight) (obl to {destination=city}) +on_day
        book (obj {quantity=several}/nummod tickets|seats) (obl to {destination=city}) (~obl on {airline})
        find (obj flights) (obl from {origin=city}) (obl to {destination=city}) (obl under {price})
        get (obj me) (obl on a plane) (obl to {destination=city}) +on_day
        reserve (obj a window|aisle/compound seat) (obl to {destination=city}) (obl with {airline})?
        fly (obj me) (obl from {origin=city}) (obl to {destination=city}) (obl with {airline})
        = i'm going (obl to {destination=city}) (obl for {duration=stay}) (parataxis book (obj a flight) +on_day)
        book (obj the {time}/compound flight) (obl to {destination=city}) (obl:tmod {date})?
        """,
    ),
    Intent(
        "book_ride",
        "travel",
        weight=1.6,
        urgency=0.5,
        lines="""
        call|get me/iobj (obj a {vehicle}) (obl to {destination=address})
        book|order (obj a {vehicle}) +when (obl to {destination=address})?
        get (obj a {vehicle}) (obl for {quantity:party=party_size}) (obl to {destination=address})?
        = i need (obj a ride) (obl to {destination=address}) +when?
        order (obj a {vehicle}) (obl from {origin=address}) (obl to {destination=address})
        have (obj a {vehicle}) (xcomp pick (obj me) up/prt (obl at {origin=address}))
        send (obj a {vehicle}) (obl to {origin=address}) (~obl at {time})
        find (obj a lift) (obl to the {event}) +when
        """,
    ),
    Intent(
        "flight_status",
        "travel",
        weight=0.6,
        urgency=0.46,
        lines="""
        = is (nsubj flight {number=flight_number}/nummod) late|delayed|canceled
        check (obj the status (nmod of flight {number=flight_number}/nummod))
        = is (nsubj the {airline}/compound flight (nmod to {destination=city})) late|delayed
        = when does (nsubj {airline} {number=flight_number}/nummod) land|arrive|leave (obl in {destination=city})?
        = has/aux (nsubj my flight (nmod to|from {destination=city})) landed|left yet/advmod
        = did (nsubj {airline} {number=flight_number}/nummod) take off/prt
        """,
    ),
)
