/* conformance/interpose.h: what the plugin's own file asks of libc that a plugin should not, or that the kit follows:
 * variables that it reads, descriptors that it opens, threads that it starts. What a driver's library does is not counted.
 * Where the kit is built with a sanitizer, descriptors and threads are not followed: the sanitizer does the same. */
#ifndef HEDDLE_CONFORMANCE_INTERPOSE_H
#define HEDDLE_CONFORMANCE_INTERPOSE_H

#include <stdbool.h>
#include <stdint.h>

/* From here on the calls of this file are kept. */
void interpose_watch(const char *plugin);

/* The first variable that the plugin's file asked for, NULL where it asked for none. */
const char *interpose_variable(void);

/* Whether the plugin's file opened this descriptor (or one of the same number last). */
bool interpose_opened(int fd);

/* The threads that the plugin's file started, by Linux's numbers: at most most, also ended ones. Gives how many. */
uint32_t interpose_threads(int32_t *out, uint32_t most);

/* The first function with a state that the whole process shares, and the first that writes to the standard outputs, which
 * the plugin's file called; NULL where it called none. */
const char *interpose_shared(void);
const char *interpose_printed(void);

/* Whether an address lies in the plugin's file; false before interpose_watch. */
bool interpose_by_plugin(const void *caller);

/* Whether this program is built with a sanitizer, which has the same functions itself. */
#if defined(__has_feature)
#define INTERPOSE_BUILT_WITH(feature) __has_feature(feature)
#else
#define INTERPOSE_BUILT_WITH(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || INTERPOSE_BUILT_WITH(address_sanitizer) || \
    INTERPOSE_BUILT_WITH(thread_sanitizer)
#define INTERPOSE_SANITIZED 1
#else
#define INTERPOSE_SANITIZED 0
#endif

#endif
