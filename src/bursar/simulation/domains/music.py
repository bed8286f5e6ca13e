"""Music."""

from __future__ import annotations

from bursar.simulation.domains.intent import Intent

MUSIC = (
    Intent(
        "play_music",
        "music",
        weight=13.6,
        urgency=0.22,
        lines="""
        play (obj some {genre})
        play (obj {song} (nmod by {artist}))
        play (obj {song})
        play (obj {artist})
        play (obj some {genre}/compound music)
        play (obj my {playlist}/compound playlist)
        play (obj something (nmod by {artist}))
        put on/prt (obj some {genre})
        play (obj the {playlist}/compound playlist) (obl on the {device=player})?
        = i want|wanna (xcomp to/mark? hear (obj {song}))
        put on/prt (obj {song} (nmod by {artist}))
        play (obj {genre}) (obl in the {room})
        listen (obl to {artist})
        play (obj the album {album}/appos (nmod by {artist})?)
        turn on/prt (obj some {genre}/compound? music)
        start (obj my {playlist}/compound playlist) (~obl at {time})
        play (obj track {number=track}/nummod) (obl of|from {album})
        = i'm in the mood (nmod for {genre})
        find me/iobj (obj that song (nmod by {artist})) (conj and play it)
        shuffle (obj {playlist})
        play (obj the latest|new/amod {artist}/compound album|song|single)
        give me/iobj (obj some {genre}) (obl for the {event})
        wake (obj the house) up/prt (obl with {song})
        play (obj number {number=track}/nummod (nmod on {album}))
        = how/advmod *about (obl some {genre}) (obl for {duration})
        set (obj the mood) (obl with some {genre}/compound music)
        queue up/prt (obj {song} (conj and then {song}))
        call up/prt (obj {album} (nmod by {artist}))
        """,
    ),
    Intent(
        "control_music",
        "music",
        weight=4.6,
        urgency=0.3,
        lines="""
        skip (obj this song)
        pause|stop (obj the music)
        = next/amod song|track please
        turn (obj the volume) up|down/prt
        skip (obl to track {number=track}/nummod)
        set (obj the volume) (obl to {level})
        turn (obj the music) down|up/prt (obl to {level})?
        go back/advmod (obl to the last|previous/amod song)
        = (nsubj this song) is/cop too loud|quiet (parataxis set it (obl to {level}))
        repeat (obj this track|song|album)
        resume|continue (obj the {playlist}/compound? music|playlist)
        stop playing/xcomp (~obl in {duration})
        make (obj it) louder|quieter/xcomp (obl in the {room})?
        mute (obj the {device=player}) (obl in the {room})?
        play (obj that) (advmod one/nummod more/amod *time)
        turn off/prt (obj {artist})
        = i don't *like (obj this song) (parataxis play (obj another/det *one))
        jump (obl to number {number=track}/nummod)
        set (obj the speaker) (obl in the {room}) (obl to {level})
        = enough (nmod of {artist}) (parataxis stop it)
        """,
    ),
    Intent(
        "add_to_playlist",
        "music",
        weight=1.8,
        urgency=0.15,
        lines="""
        add (obj this song) (obl to my {playlist}/compound playlist)
        add (obj {song}) (obl to my|the {playlist}/compound playlist)
        put (obj {song} (nmod by {artist})) (obl on my {playlist}/compound list|playlist)
        save (obj this) (obl to {playlist})
        add (obj {artist}) (obl to my {playlist})
        = (nsubj {song}) belongs (obl on my {playlist}/compound playlist)
        include (obj the song {song}/appos) (obl in {playlist})
        make (obj a playlist (acl called {playlist}/xcomp)) (obl with {song})
        put (obj some more/amod {genre}/compound songs) (obl on {playlist})
        """,
    ),
    Intent(
        "name_song",
        "music",
        weight=0.8,
        urgency=0.16,
        lines="""
        = *what's (nsubj this song)
        = *who is|was (nsubj the singer (nmod of {song}))
        = who/nsubj sings (obj {song})
        tell me/iobj (obj the name (nmod of this song|artist))
        = (obl what album) is/cop (nsubj {song}) *on
        = (nsubj which/det artist) made (obj {album})
        = who/nsubj is/aux playing (advmod right/advmod *now)
        """,
    ),
)
