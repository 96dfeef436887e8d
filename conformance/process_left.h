/* The cases of the group "process" that are not in process.c (process_left.c, process_calls.c, process_shared.c). */
#ifndef HEDDLE_CONFORMANCE_PROCESS_LEFT_H
#define HEDDLE_CONFORMANCE_PROCESS_LEFT_H

#include "conformance/kit.h"

/* A little of everything: bytes there and back, events, fences and calls that fail, on a stream of its own; nothing on a
 * device that makes no streams. */
void process_work(kit *k);

void process_children(kit *k);
void process_inherited(kit *k);
void process_thread_signals(kit *k);
void process_environment(kit *k);
void process_calls(kit *k);
void process_functions(kit *k);
void process_globals(kit *k);
void process_forked(kit *k);
void process_child_kept(kit *k);

#endif
