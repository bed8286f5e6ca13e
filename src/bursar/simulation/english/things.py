"""Rooms, devices, groceries, shops, dishes and restaurants."""

from __future__ import annotations

from bursar.simulation.grammar import Grammar


def add_things(grammar: Grammar) -> None:
    """The symbols for what people own, buy and eat."""
    _add_home(grammar)
    _add_weather(grammar)
    _add_goods(grammar)
    _add_food(grammar)
    _add_travel(grammar)


def _add_home(grammar: Grammar) -> None:
    grammar.define("alarm_name", "work\nmorning\n<activity>\nschool\nmedicine\n<event>\n<grocery>", exponent=0.85)
    grammar.define(
        "timer_name", "pasta\n<dish>\negg\noven\n<grocery>\nlaundry\nnap\n<activity>\ntea\n<device>", exponent=0.7
    )
    grammar.compounds("app", "email,messenger,video,chat,work chat,family group,voicemail")
    grammar.names("track", "seven,two,three,one,ten,five,four,12,9,eleven")
    grammar.define("origin", "<city>\n<address>\nhome\nhere", exponent=1.2)
    grammar.compounds(
        "room",
        "kitchen,living room,bedroom,bathroom,office,garage,basement,hallway,dining room,guest room,attic,porch,"
        "nursery,laundry room,study,patio,garden,kids room,master bedroom,den,music room,game room,upstairs bathroom,"
        "room seven,room two,front porch,sun room,conference room",
        exponent=1.35,
    )
    grammar.compounds(
        "device",
        "lights,tv,fan,heater,lamp,air conditioner,speaker,coffee maker,oven,radio,ceiling fan,dishwasher,sprinklers,"
        "floor lamp,washing machine,humidifier,vacuum,fireplace,night light,christmas lights,alarm system,"
        "space heater,air purifier,bread machine,projector,printer,hot tub,desk lamp,string lights,aquarium pump,"
        "toaster,towel warmer",
        exponent=1.55,
    )
    grammar.compounds(
        "light", "lights,lamp,ceiling light,floor lamp,bedside lamp,chandelier,spotlights,desk lamp,night light"
    )
    grammar.compounds("player", "speaker,tv,radio,stereo,headphones,kitchen speaker,bedroom tv,soundbar")
    grammar.compounds("warmer", "heater,oven,air conditioner,hot tub,fireplace,water heater,towel warmer,grill")
    grammar.compounds(
        "color", "blue,red,warm white,green,purple,orange,pink,soft yellow,teal,gold,dark blue,white,violet"
    )
    grammar.define(
        "level", "<percentage>\n<percentage>/nummod percent\n<small_number>\nhalf\nmaximum\nthe lowest/amod setting"
    )
    grammar.define("temperature", "<degrees>\n<degrees>/nummod degrees")
    grammar.compounds("door", "front door,back door,garage door,door,gate,side door,patio door,basement door,shed,safe")


def _add_weather(grammar: Grammar) -> None:
    grammar.compounds("precipitation", "rain,snow,storm,hail,thunderstorm,drizzle,sleet,fog")
    grammar.compounds("condition", "sunny,cold,windy,cloudy,warm,rainy,hot,humid,icy,foggy,freezing,clear,stormy,nice")


def _add_goods(grammar: Grammar) -> None:
    grammar.compounds(
        "grocery",
        "milk,eggs,bread,bananas,coffee,cheese,paper towels,apples,rice,chicken,tomatoes,butter,toothpaste,onions,"
        "pasta,orange juice,dog food,spinach,cereal,olive oil,yogurt,batteries,light bulbs,avocados,flour,"
        "peanut butter,strawberries,pizza,trash bags,garlic,lemons,tofu,salmon,dish soap,tortillas,ice cream,"
        "green beans,honey,cat litter,almonds,black pepper,diapers,chocolate,sparkling water,ginger,shampoo,"
        "maple syrup,oat milk",
        exponent=1,
    )
    grammar.compounds(
        "gadget",
        "headphones,running shoes,phone charger,backpack,yoga mat,blender,tent,desk lamp,alarm clock,raincoat,"
        "keyboard,coffee maker,water bottle,board game,rice cooker,speaker,umbrella,kitchen timer,office chair,"
        "wool blanket,drill,garden hose,picture frame,guitar strings,birthday card,bike helmet,suitcase,calendar,"
        "sunglasses,toy train",
        exponent=0.7,
    )
    grammar.compounds("quality", "organic,large,cheap,fresh,wireless,blue,small,extra,frozen,new,black,used,spicy,red")
    grammar.define(
        "item",
        """
        <grocery>
        <quality>/amod <grocery>
        <gadget>
        <quality>/amod <gadget>
        """,
        exponent=1.85,
    )
    grammar.define("quantity", "<small_number>\n<small_number>\nfifty\na hundred\nthirty", exponent=2.55)
    grammar.define(
        "measure",
        """
        <small_number>/nummod pounds|boxes|bottles|cans|bags|packs
        a carton|bag|box|bottle|can|loaf|pack
        half/det a pound|gallon
        a couple
        """,
        exponent=1.2,
    )
    grammar.names(
        "store", "Greenway,Harlow,Bright Mart,Cornerstone,Tall Pines,Kestrel,Juniper,Oakley,Rose,Madison Market"
    )
    grammar.compounds("list_name", "shopping,grocery,weekend,party,christmas,camping,hardware,birthday,dinner,baby")
    grammar.define(
        "price",
        "<round_number>/nummod dollars|bucks|euros\n<price_word>\n<round_number>/nummod hundred/compound dollars",
    )
    grammar.compounds("price_word", "fifty,thirty,a hundred,two hundred,twenty five,ten")


def _add_food(grammar: Grammar) -> None:
    grammar.compounds(
        "cuisine",
        "italian,chinese,mexican,thai,indian,japanese,greek,french,vegan,korean,vietnamese,spanish,ethiopian,turkish,"
        "lebanese,cuban,cajun,latin,peruvian,southern",
        exponent=1.2,
    )
    grammar.compounds(
        "dish",
        "pizza,sushi,burgers,tacos,ramen,pad thai,salad,chicken wings,curry,dumplings,fried rice,burrito,lasagna,"
        "bagels,falafel,noodles,barbecue ribs,pancakes,lobster rolls,veggie wrap,garlic bread,spring rolls,"
        "cheese pizza,miso soup,tomato soup,chocolate cake",
        exponent=1,
    )
    grammar.compounds("creature", "fox,lion,swan,goose,bear,tiger,crane,rabbit,heron,otter,crow,stag", exponent=0.5)
    grammar.compounds("eatery", "kitchen,grill,cafe,house,bistro,diner,table,garden,tavern,corner", exponent=0.5)
    grammar.define(
        "restaurant",
        """
        <owner>
        the <title_adjective>/amod <creature>
        <owner>/poss <eatery>
        <city>/compound <eatery>
        the <title_noun>/compound <eatery>
        <surname> (conj and <surname>)
        <surname>
        casa <first_name>/flat
        the <creature> (conj and the <creature>)
        """,
        title=True,
        exponent=0.85,
    )
    grammar.define(
        "party_size",
        "<small_number>\n<small_number>/nummod people\n<small_number>/nummod adults\njust *me",
        exponent=1.7,
    )
    grammar.define("rating", "five|four|two|three/nummod stars\none/nummod star\nten (nmod out/case of ten)")


def _add_travel(grammar: Grammar) -> None:
    grammar.names("airline", "Northstar,Blue Heron,Delmar Air,Polaris,Jetway,Condor Pacific,Skylark,Austral,Meridian")
    grammar.compounds("vehicle", "taxi,cab,shuttle,van,car,limo,bike,scooter,minibus")
    grammar.compounds("flight_digit", "seven,two,ten,forty,twelve,nine,one,sixty,22,301,417,88,1020,5", exponent=0.35)
    grammar.define("flight_number", "<flight_digit>\n<flight_digit> <flight_digit>/flat\n", exponent=0.85)
