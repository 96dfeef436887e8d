/* The cases of the group "copy" that need two devices (copy_peer.c). */
#ifndef HEDDLE_CONFORMANCE_COPY_H
#define HEDDLE_CONFORMANCE_COPY_H

#include "conformance/tables.h"

void kit_copy_host_of_other(kit *k);
void kit_copy_peer(kit *k);
void kit_copy_peer_streams(kit *k);
void kit_copy_can_peer(kit *k);

#endif
