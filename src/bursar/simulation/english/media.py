"""Titles and makers of music, built from parts so that there is always one that was never heard before."""

from __future__ import annotations

from bursar.simulation.grammar import Grammar


def add_media(grammar: Grammar) -> None:
    """The symbols for songs, artists, albums, genres and playlists."""
    _add_title_words(grammar)
    grammar.define(
        "song",
        """
        <title_adjective>/amod <title_noun>
        <title_noun> (nmod of the <title_noun>)
        <title_verb> me/obj <title_adverb>/advmod
        <title_noun> (conj and <title_noun>)
        the <title_adjective>/amod <title_noun>
        <title_gerund> (obl in the <title_noun>)
        <title_noun>
        <title_gerund> <title_adverb>/advmod
        don't <title_verb> (obj the <title_noun>)
        <small_number>/nummod <title_plural>
        <title_verb> (obl with the <title_noun>)
        wake me up/prt (obl at midnight)
        my <title_noun> (nmod in <city>)
        turn off/prt (obj the <title_noun>)
        <title_noun> (nmod at <hour>)
        call me tomorrow/obl:tmod
        """,
        title=True,
        exponent=1,
    )
    grammar.define(
        "artist",
        """
        <first_name> <surname>/flat
        the <title_adjective>/amod <title_plural>
        the <title_plural>
        <first_name>
        <title_noun> <title_noun>/flat
        <first_name> (conj and the <title_plural>)
        <surname>
        <city>/compound <title_plural>
        <title_adjective>/amod <title_noun>
        """,
        title=True,
        exponent=1.2,
    )
    grammar.define(
        "album",
        """
        <title_adjective>/amod <title_plural>
        songs (nmod from the <title_noun>)
        <title_noun> (conj and <title_noun>)
        live (obl in <city>)
        the <title_noun>/compound tapes|sessions|years
        <title_gerund>
        """,
        title=True,
        exponent=0.85,
    )
    _add_genres_and_playlists(grammar)


def _add_title_words(grammar: Grammar) -> None:
    grammar.compounds(
        "title_noun",
        "night,river,summer,heart,fire,road,rain,kitchen,city,moon,ocean,dream,shadow,train,winter,window,garden,"
        "thunder,mirror,harbor,light,storm,desert,alarm,highway,ghost,paper,morning,sugar,mountain,timer,radio,lantern,"
        "island,velvet,tomorrow,echo,station,honey,weather,door,gold,sunday,bridge,canyon,satellite",
        exponent=0.5,
    )
    grammar.compounds(
        "title_plural",
        "wolves,strangers,nights,lovers,rivers,kings,shadows,lights,tigers,brothers,ghosts,flowers,drivers,sparrows,"
        "minutes,pilots,tides,orchids,thieves,mornings,saints,foxes,engines,neighbors,weekends,dancers,messages",
        exponent=0.5,
    )
    grammar.compounds(
        "title_adjective",
        "blue,wild,broken,golden,lonely,electric,silent,red,little,crazy,cold,hidden,sweet,black,endless,gentle,lost,"
        "paper,crimson,young,quiet,burning,secret,hollow,green,warm,midnight,distant",
        exponent=0.5,
    )
    grammar.compounds(
        "title_gerund", "dancing,running,falling,waiting,driving,singing,burning,drifting,leaving,calling"
    )
    grammar.compounds(
        "title_verb", "take,hold,call,leave,remind,follow,find,carry,wake,kiss,forget,wait,text,save,dance"
    )
    grammar.compounds("title_adverb", "home,tonight,again,slowly,away,forever,tomorrow,down,gently,alone,now,later")


def _add_genres_and_playlists(grammar: Grammar) -> None:
    grammar.compounds(
        "genre",
        "jazz,rock,pop,hip hop,classical,country,blues,reggae,folk,techno,indie,soul,metal,latin,lo fi,opera,funk,"
        "bossa nova,punk,gospel,ambient,disco,bluegrass,salsa,swing",
        exponent=1.2,
    )
    grammar.compounds(
        "activity",
        "workout,cooking,study,dinner,driving,party,sleep,running,morning,yoga,cleaning,beach,road trip,weekend,"
        "shopping",
        exponent=0.7,
    )
    grammar.compounds("mood", "chill,happy,sunday,relaxing,summer,late night,rainy day,best,sad,monday,loud,old school")
    grammar.define(
        "playlist",
        """
        <mood>/compound <activity>
        <activity>/compound mix|songs|tunes
        <activity>
        <mood>/compound <genre>
        <first_name> <activity>/flat
        songs (nmod for the <activity>)
        <mood>/compound <title_plural>
        <genre> (nmod for <activity>)
        <mood>/compound mix|vibes|hits
        """,
        title=True,
        exponent=0.85,
    )
