/* The case of the group "health" that is not in health.c: a lost device (health_lost.c). */
#ifndef HEDDLE_CONFORMANCE_HEALTH_H
#define HEDDLE_CONFORMANCE_HEALTH_H

#include "conformance/tables.h"

void kit_health_lost(kit *k);

#endif
