/* A wait for an event holds nothing back.
 * caught by: events/write-before-read
 * and by: events fences/held-event streams/adopt-%
 * says: another stream wrote before the event */
#include "base.h"

static heddle_status wait_nothing(heddle_pstream *stream, heddle_pevent *event, heddle_error *err) {
  (void)stream, (void)event, (void)err;
  return HEDDLE_OK;
}

#define base_event_wait wait_nothing
#include "tables.h"
