/* The cases of the group "health" that are not in health.c: a lost device (health_lost.c). */
#ifndef HEDDLE_CONFORMANCE_HEALTH_H
#define HEDDLE_CONFORMANCE_HEALTH_H

#include "conformance/tables.h"

void kit_health_lost(kit *k);
void kit_health_lost_fault(kit *k);
void kit_health_lost_fences(kit *k);
void kit_health_lost_later(kit *k);
void kit_health_lost_words(kit *k);
void kit_health_lost_memory(kit *k);
void kit_health_lost_again(kit *k);
void kit_health_reset(kit *k);

#endif
