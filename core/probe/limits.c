/* core/probe/limits.c: the limits of a process by getrlimit, and those on the memory of its control group (both versions). */
#define _DEFAULT_SOURCE /* RLIMIT_NPROC, RLIMIT_MEMLOCK */
#include "core/probe/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const struct {
  const char *name;
  int resource; /* -1: of the control group */
} kinds[HEDDLE_LIMITS] = {
    {"as", RLIMIT_AS},       {"data", RLIMIT_DATA},     {"stack", RLIMIT_STACK},
    {"nproc", RLIMIT_NPROC}, {"nofile", RLIMIT_NOFILE}, {"fsize", RLIMIT_FSIZE},
    {"cpu", RLIMIT_CPU},     {"group_memory", -1},      {"memlock", RLIMIT_MEMLOCK},
};

/* ---- the control group */

enum { MOST_PATH = 4096 };

/* The number in a file; INT64_MAX where there is none ("max", or a number that stands for it). */
static int64_t number_in(const char *path) {
  char text[32] = "";
  FILE *f = fopen(path, "re");
  if (f == NULL) return INT64_MAX;
  bool there = fgets(text, sizeof text, f) != NULL && text[0] >= '0' && text[0] <= '9';
  fclose(f);
  long long n = there ? strtoll(text, NULL, 10) : INT64_MAX;
  return n >= (INT64_C(1) << 60) ? INT64_MAX : n;
}

/* The least of a group and those above it. group is changed. */
static int64_t least(const char *root, char *group, const char *file) {
  int64_t least_is = INT64_MAX;
  for (;;) {
    char path[MOST_PATH + 128];
    snprintf(path, sizeof path, "%s%s/%s", root, group, file);
    int64_t n = number_in(path);
    if (n < least_is) least_is = n;
    char *slash = strrchr(group, '/');
    if (slash == NULL) return least_is;
    *slash = '\0';
  }
}

/* Lines "NUMBER:CONTROLLERS:PATH"; version 2 names no controllers. */
static int64_t group_memory(void) {
  char line[MOST_PATH];
  int64_t least_is = INT64_MAX;
  FILE *f = fopen("/proc/self/cgroup", "re");
  while (f != NULL && fgets(line, sizeof line, f) != NULL) {
    char *controllers = strchr(line, ':'), *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL) continue;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    int64_t n = INT64_MAX;
    if (controllers[1] == '\0') n = least("/sys/fs/cgroup", group, "memory.max");
    else if (strcmp(controllers + 1, "memory") == 0) n = least("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
    if (n < least_is) least_is = n;
  }
  if (f != NULL) fclose(f);
  return least_is;
}

/* ---- all of them */

heddle__limits heddle__limits_now(void) {
  heddle__limits out;
  for (int i = 0; i < HEDDLE_LIMITS; i++) {
    struct rlimit at;
    out.value[i] = INT64_MAX;
    if (kinds[i].resource < 0) out.value[i] = group_memory();
    else if (getrlimit(kinds[i].resource, &at) == 0 && at.rlim_cur < (rlim_t)INT64_MAX)
      out.value[i] = (int64_t)at.rlim_cur; /* RLIM_INFINITY is above that */
  }
  return out;
}

bool heddle__limits_looser(const heddle__limits *a, const heddle__limits *b) {
  for (int i = 0; i < HEDDLE_LIMITS; i++)
    if (a->value[i] > b->value[i]) return true;
  return false;
}

heddle__limits heddle__limits_most(const heddle__limits *a, const heddle__limits *b) {
  heddle__limits out = *a;
  for (int i = 0; i < HEDDLE_LIMITS; i++)
    if (b->value[i] > out.value[i]) out.value[i] = b->value[i];
  return out;
}

json_t *heddle__limits_json(const heddle__limits *limits) {
  json_t *object = json_object();
  for (int i = 0; i < HEDDLE_LIMITS && object != NULL; i++) {
    int64_t n = limits->value[i];
    json_object_set_new(object, kinds[i].name, json_integer(n == INT64_MAX ? -1 : n));
  }
  return object;
}

heddle__limits heddle__limits_of(const json_t *object) {
  heddle__limits out;
  for (int i = 0; i < HEDDLE_LIMITS; i++) {
    const json_t *n = json_object_get(object, kinds[i].name);
    json_int_t value = json_is_integer(n) ? json_integer_value(n) : 0;
    out.value[i] = value < 0 ? INT64_MAX : value;
  }
  return out;
}
