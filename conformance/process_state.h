/* conformance/process_state.h: the state of the process that a plugin may not touch, taken and compared. */
#ifndef HEDDLE_CONFORMANCE_PROCESS_STATE_H
#define HEDDLE_CONFORMANCE_PROCESS_STATE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct process_state process_state;

/* malloc's; NULL where memory is out. */
process_state *process_state_take(void);
void process_state_free(process_state *s);

/* What differs now, as text ("the variable LANG"), in out; false where nothing does. What a driver's library did does
 * not count, and goes to note: a handler of a signal that does not lie in the plugin's own file, and a variable where
 * that file calls nothing that changes variables. */
bool process_state_differs(const process_state *before, const char *plugin, char *out, size_t bytes, char *note,
                           size_t note_bytes);

#endif
