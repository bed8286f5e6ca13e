"""People and places. Some names are both on purpose: only the words around them tell a contact from a city."""

from __future__ import annotations

from bursar.simulation.grammar import Grammar

FIRST_NAMES = (
    "Jordan,Sarah,Austin,Emma,Charlotte,Daniel,Sydney,Maria,Tom,Florence,Grace,Paris,Liam,Priya,Madison,Omar,Georgia,"
    "Nina,Dallas,Kevin,Chelsea,Aisha,Victoria,Ben,Hannah,Lucas,Mei,Savannah,Rosa,Felix,Ingrid,Carlos,Tanya,Jackson,"
    "Amir,Ruby,Dylan,Yuki,Brooklyn,Oscar,Helen,Marcus,Leah,Viktor,Camille,Theo,Bianca,Rajesh,Elena,Walter,Summer,"
    "Kofi,June,Stella,Adrian,Phoenix,Greta,Malik,Sofia,Henry,April,Nadia,Declan,Iris,Rowan,Zara,Milan,Heidi,Tobias,"
    "Esther,Quentin,Simone,Diego,Paige,Anton,Fatima,Rose,Clive,Maeve,Ivan,Opal,Reggie,Saskia,Bruno,Wren,Dmitri"
)
SURNAMES = (
    "Miller,Garcia,Chen,Patel,Brooks,Lincoln,Kim,Novak,Santos,Walker,Hughes,Okafor,Murphy,Fischer,Washington,Larsen,"
    "Moreau,Silva,Grant,Ivanova,Carter,Nakamura,Reed,Houston,Costa,Webb,Haddad,Flynn,Bell,Sharma,Stone,Wood,Berg,"
    "Price,Romano,Kelly,Hunt,Duarte,Fox,Young,Marsh,Keller,Winters,Osei,Lane,Burke,Hale,Rivers,Tanaka,Frost,Quinn,"
    "Abbott,Doyle,Vance,Petrov,Mercer,Lowe,Nash,Pike,Sorensen"
)
CITIES = (
    "Boston,Chicago,Denver,London,Paris,Austin,Seattle,Dallas,New York,Berlin,Phoenix,Sydney,Houston,Charlotte,Madrid,"
    "San Diego,Florence,Portland,Madison,Tokyo,Savannah,Lisbon,Jackson,Vienna,Lincoln,Victoria,Salt Lake City,Rome,"
    "Kansas City,Milan,Dublin,Baton Rouge,Oslo,Santa Fe,Columbus,Athens,Cape Town,Brooklyn,Mexico City,Tampa,Lyon,"
    "Grand Rapids,Bristol,Eugene,Nairobi,Las Vegas,Geneva,Little Rock,Prague,Fort Worth,Naples,Albany,Cedar Falls,"
    "Reno,Zagreb,Long Beach,Toledo,Winnipeg,Palm Springs,Krakow,Quebec,El Paso,Hanoi,Des Moines,Montreal,Santa Cruz"
)


def add_people(grammar: Grammar) -> None:
    """The symbols for people, families and places."""
    grammar.names("first_name", FIRST_NAMES, exponent=1.35)
    grammar.names("surname", SURNAMES, exponent=0.85)
    grammar.compounds("kin", "mom,dad,brother,sister,wife,husband,boss,roommate,uncle,daughter,landlord,neighbor,coach")
    grammar.define(
        "contact",
        """
        <first_name>
        mom|dad
        <first_name> <surname>/flat
        my <kin>
        my friend|cousin|neighbor|colleague <first_name>/appos
        doctor <surname>/flat
        grandma|grandpa
        aunt|uncle <first_name>/flat
        coach|professor|mrs|mr <surname>/flat
        the babysitter|plumber|dentist|office
        <first_name> (nmod from work|school|church|accounting)
        the <surname>/compound family
        everyone (nmod in|from my team|family|class)
        """,
        exponent=2.05,
    )
    _add_places(grammar)


def _add_places(grammar: Grammar) -> None:
    grammar.names("city", CITIES, exponent=1.35)
    grammar.compounds("region", "Texas,Georgia,Jordan,Scotland,Florida,Ontario,Bavaria,Oregon,Norfolk,Peru,Kansas")
    grammar.names(
        "city_and_region",
        "Portland Oregon,Savannah Georgia,Austin Texas,Paris Texas,Jackson Mississippi,Victoria Canada,Naples Florida,"
        "Athens Georgia,London Ontario,Eugene Oregon,Toledo Spain,Columbus Ohio,Charlotte North Carolina",
        exponent=0.35,
    )
    grammar.define("place", "<city>\n<city_and_region>\n<region>\ndowntown/compound <city>", exponent=2.05)
    grammar.names(
        "street_name",
        "Maple,Oak,Lincoln,Main,Cedar,Hill,Church,Madison,Park,River,Elm,Grant,Mill,Spring,Rose,Lake,King",
    )
    grammar.names("cross_street", "First,Second,Third,Union,Fourth,Bay,Market,Fifth,Seventh,Summer,Pine")
    grammar.compounds("house_number", "12,42,7,110,25,301,1600,88,ten,9,64,215,3,19,77,540,1,six", exponent=0.35)
    grammar.define("street", "<street_name>/compound street|avenue|road|lane|drive|boulevard")
    grammar.compounds(
        "spot",
        "airport,library,gym,nearest gas station,train station,mall,hospital,office,beach,pharmacy,post office,"
        "stadium,city museum,farmers market,bus station,zoo,nearest hardware store,art gallery,dog park,town hall",
        exponent=0.85,
    )
    grammar.define(
        "address",
        """
        the <spot>
        <house_number>/nummod <street_name>/compound street|avenue|road|lane
        <owner>/poss house|place|office|apartment
        the corner (nmod of <street_name> (conj and <cross_street>))
        the <spot> (nmod on <street>)
        <street>
        the <spot> (nmod in <city>)
        work
        my brother's|sister's|boss's|uncle's/poss house|place
        """,
    )
    grammar.names("owner", ",".join(f"{name}'s" for name in FIRST_NAMES.split(",")), exponent=1.35)
    grammar.define("destination", "<city>\n<place>\n<address>", exponent=0.35)
