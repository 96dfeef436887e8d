/* A tracker of TVM's RPC, asked for a server of a key. */
#ifndef HEDDLE_PLUGINS_REMOTE_TRACKER_H
#define HEDDLE_PLUGINS_REMOTE_TRACKER_H

#include "heddle/plugin.h"

enum { REMOTE_PLACE_ROOM = 320 };

/* Waits for at most limit_ms until the tracker at the other end of fd gives a server: place is HOST:PORT. address is for the
 * text of an error: HEDDLE_ENODEV, also where all servers of the key are in use. fd does not block, and stays
 * the caller's; when it is closed, the tracker forgets a request that it has not served. */
heddle_status remote_ask_tracker(int fd, const char *address, const char *key, uint32_t limit_ms,
                                 char place[REMOTE_PLACE_ROOM], heddle_error *err);

#endif
