/* What a plugin says of its own build in its root table: P_BUILD for the member build, P_FEATURES for features. */
#ifndef HEDDLE_PLUGINS_COMMON_PBUILD_H
#define HEDDLE_PLUGINS_COMMON_PBUILD_H

#include "heddle/plugin.h"

#ifndef HEDDLE_VERSION
#define HEDDLE_VERSION "unversioned"
#endif

#if defined(__clang__)
#define P_BUILD HEDDLE_VERSION " (" __VERSION__ ")"
#elif defined(__GNUC__)
#define P_BUILD HEDDLE_VERSION " (gcc " __VERSION__ ")"
#else
#define P_BUILD HEDDLE_VERSION
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define P_HAS_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define P_HAS_TSAN 1
#endif
#if __has_feature(memory_sanitizer)
#define P_HAS_MSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define P_HAS_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define P_HAS_TSAN 1
#endif

#if defined(P_HAS_ASAN)
#define P_FEATURES HEDDLE_FEATURE_ASAN
#elif defined(P_HAS_TSAN)
#define P_FEATURES HEDDLE_FEATURE_TSAN
#elif defined(P_HAS_MSAN)
#define P_FEATURES HEDDLE_FEATURE_MSAN
#else
#define P_FEATURES UINT64_C(0)
#endif

#endif
