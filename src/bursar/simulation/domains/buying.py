"""Shopping and restaurants."""

from __future__ import annotations

from bursar.simulation.domains.intent import Intent

SHOPPING = (
    Intent(
        "add_to_list",
        "shopping",
        weight=3.6,
        urgency=0.18,
        lines="""
        add (obj {item=grocery}) (obl to my shopping/compound list)
        add (obj {item=grocery} (conj and {item=grocery})) (obl to the list)
        put (obj {item}) (obl on my|the {list_name}/compound list)
        add (obj {quantity}/nummod {item=grocery}) (obl to my {list_name}/compound list)
        = we need (obj {item=grocery} (conj and {item=grocery}))
        = we're out/advmod of {item=grocery}
        add (obj {quantity}/nummod {item=grocery} (conj and {quantity}/nummod {item=grocery})) (obl to the list)
        put (obj {quantity=measure} (nmod of {item=grocery})) (obl on the {list_name}/compound list)
        write down/prt (obj {item}) (obl for the store)
        = i *have (xcomp to/mark buy|get (obj {quantity}/nummod {item})) (obl for the {event})
        include (obj {item}) (obl on the {list_name}/compound list) (obl for {event})
        remember (obj {item=grocery}) (obl for {list_name}/compound shopping)
        add (obj {item=dish}) (obl to the {list_name}/compound list)
        make (obj a {list_name}/compound list) (obl with {item=grocery} (conj and {item=grocery}))
        """,
    ),
    Intent(
        "order_item",
        "shopping",
        weight=1.6,
        urgency=0.3,
        lines="""
        order (obj {item}) (obl from {store})
        buy (obj {quantity}/nummod {item})
        order (obj {quantity}/nummod more/amod? {item}) (obl from {store})?
        buy (obj a {item=gadget}) (obl under|for {price})
        find me/iobj (obj a {item=gadget}) (obl for {price}) (obl at {store})?
        = i want|need (xcomp to/mark buy (obj a {item=gadget}) (obl for {contact}))
        get (obj {quantity=measure} (nmod of {item=grocery})) (acl delivered) +when?
        reorder (obj the {item}) (acl:relcl i got (obl from {store}))
        place (obj an order (nmod for {quantity}/nummod {item}))
        send (obj a {item=gadget}) (obl to {contact}) (obl for {price})?
        """,
    ),
    Intent(
        "track_order",
        "shopping",
        weight=0.6,
        urgency=0.34,
        lines="""
        track (obj my order|package)
        = *where is (nsubj my {item=gadget} (nmod from {store})?)
        = when will/aux (nsubj my {item=gadget}) arrive|come
        = has/aux (nsubj the {item=gadget}) shipped (obl from {store})? yet/advmod
        check (obl on my {store}/compound order)
        = did (nsubj my {item=gadget}) get (advmod here) (obl:tmod {date})?
        """,
    ),
    Intent(
        "return_item",
        "shopping",
        weight=0.35,
        urgency=0.3,
        lines="""
        return (obj the {item=gadget}) (obl to {store})
        = i want (xcomp to/mark return (obj my {item=gadget}))
        send back/prt (obj the {item=gadget}) (acl:relcl i bought (obl from {store}))
        get (obj my {price}) back/advmod (obl for the {item=gadget})
        = (nsubj the {item=gadget}) (obl from {store}) is/cop broken (parataxis send it back/advmod)
        """,
    ),
)

RESTAURANT = (
    Intent(
        "book_table",
        "restaurant",
        weight=2.2,
        urgency=0.36,
        lines="""
        book (obj a table) (obl for {quantity:party=party_size}) (obl at {restaurant})
        book|reserve (obj a table) (obl at {restaurant}) +when
        make (obj a reservation) (obl at {restaurant}) (obl for {quantity:party=party_size}) +when?
        get (obj us) (obl into {restaurant}) (obl for {quantity:party=party_size}) +when
        = we want (xcomp to/mark eat (obl at {restaurant}) +when)
        reserve (obj a spot|table) (obl for {quantity:party=party_size}) (obl at a {cuisine}/compound place|restaurant)
        = table (nmod for {quantity:party=party_size}) (nmod at {restaurant}) +when?
        set up/prt (obj dinner|lunch) (obl at {restaurant}) (obl for {quantity:party=party_size}) +when
        call (obj {restaurant}) (conj and book (obj a table) (obl for {quantity:party=party_size}))
        find (obj a table) (obl for {quantity:party=party_size}) (obl in {place}) +when
        """,
    ),
    Intent(
        "find_restaurant",
        "restaurant",
        weight=2.0,
        urgency=0.24,
        lines="""
        find (obj a {cuisine}/compound restaurant) (obl near *here)?
        find (obj a {cuisine}/compound place|restaurant) (obl in {place})
        = where can i get|find (obj good/amod {dish}) (obl in {place})?
        show me/iobj (obj {cuisine}/compound restaurants) (obl near {place:near=address})
        = what/nsubj is good (obl for {cuisine}/compound food) (obl in {place})
        = i'm hungry (obl for {dish})
        recommend (obj a restaurant) (obl for {event}) (obl under {price})?
        = is {restaurant}/nsubj open +when
        look up/prt (obj {dish}) (obl in {place})
        = i *feel (obl like {dish}) (obl:tmod {date})?
        = how good is {restaurant}/nsubj (obl in {place})?
        """,
    ),
    Intent(
        "order_food",
        "restaurant",
        weight=1.0,
        urgency=0.42,
        lines="""
        order (obj some {dish}) (obl from {restaurant})
        order (obj {quantity=several}/nummod {dish}) (obl from {restaurant})?
        get (obj {dish}) (acl delivered) (obl from {restaurant})? +when?
        = i want (obj {dish} (conj and {dish})) (obl from {restaurant})
        have (obj {restaurant}) (xcomp send (obj {quantity=several}/nummod {dish})) +when?
        order (obj {cuisine}/compound? takeout) (obl for {quantity:party=party_size})
        call (obj {restaurant}) (obl for {dish})
        """,
    ),
    Intent(
        "rate_restaurant",
        "restaurant",
        weight=0.32,
        urgency=0.12,
        lines="""
        give (iobj {restaurant}) (obj {rating})
        rate (obj the {dish}) (obl at {restaurant}) (obl with {rating})?
        leave (obj a review (nmod for {restaurant}))
        = (nsubj the {dish}) (obl at {restaurant}) was/cop great|awful (parataxis give it {rating}/obj)
        add (obj {rating}) (obl to my review (nmod of {restaurant}))
        """,
    ),
)
