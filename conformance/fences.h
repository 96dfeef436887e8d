/* The cases of the group "fences" that are not in fences.c: streams that wait for fences (fences_wait.c), and streams
 * that stand still meanwhile (fences_held.c). */
#ifndef HEDDLE_CONFORMANCE_FENCES_H
#define HEDDLE_CONFORMANCE_FENCES_H

#include "conformance/tables.h"

/* How long a signal that must come is waited for: not less than a loaded machine takes for some hundred copies. */
#define KIT_FENCE_MS (kit_patience_ms(k, 8000) > 4000 ? kit_patience_ms(k, 8000) : UINT64_C(4000))

/* fence.signal; a refusal fails the case. */
void kit_signal(kit *k, heddle_pstream *s, heddle_pfence fence, uint64_t value);
/* Waits until the fence has reached value; fails the case where it has not within KIT_FENCE_MS, or has failed. */
void kit_reached(kit *k, heddle_pfence fence, uint64_t value, const char *what);

void kit_fences_inside(kit *k);

void kit_fences_wait_signalled(kit *k);
void kit_fences_wait_streams(kit *k);
void kit_fences_wait_ability(kit *k);
void kit_fences_wait_value(kit *k);
void kit_fences_failed(kit *k);
void kit_fences_fails_later(kit *k);
void kit_fences_failed_signal(kit *k);
void kit_fences_failed_once(kit *k);
void kit_fences_failed_alone(kit *k);

void kit_fences_failed_status(kit *k);
void kit_fences_failed_kept(kit *k);
void kit_fences_failed_signals(kit *k);
void kit_fences_failed_work(kit *k);

void kit_fences_held_query(kit *k);
void kit_fences_held_sync(kit *k);
void kit_fences_held_idle(kit *k);
void kit_fences_held_calls(kit *k);
void kit_fences_held_event(kit *k);
void kit_fences_held_others(kit *k);
void kit_fences_held_closed(kit *k);
void kit_fences_held_left(kit *k);
void kit_fences_held_no_signal(kit *k);

#endif
