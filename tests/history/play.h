/* play.h - a process that takes and gives back locks of all kinds at random, in a few
 * threads, and writes its history. */
#ifndef HF_TESTS_HISTORY_PLAY_H
#define HF_TESTS_HISTORY_PLAY_H

/* The name of the lock that guards the file, and that nothing else is done with. */
#define HF_PLAY_GUARD "x"

/* With long leases: each player waits for it all the time, in a thread of its own. */
#define HF_PLAY_HELD "held"

enum { HF_PLAY_NAMES = 7 };
extern const char *const hf_play_names[HF_PLAY_NAMES]; /* all that are played with */

/* argv: "play" URL DIRECTORY PLAYER SEED MS LEASES. LEASES: "short" ones end now and
 * then, of "long" ones no renewal tells anything in time; "lines": short, and no cells,
 * which end by Redis's clock and so cannot withstand it. URL: of a unix socket. Writes
 * DIRECTORY/players and DIRECTORY/file; ends by itself. */
int hf_play_main(char **argv);

#endif
