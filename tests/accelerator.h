/* tests/accelerator.h: one test, several accelerators: a test is written for "sim:0" and "sim:1", and where a case runs
 * on another plugin on() turns those names into that plugin's. What each can be asked to do is in settings_fit. */
#ifndef HEDDLE_TESTS_ACCELERATOR_H
#define HEDDLE_TESTS_ACCELERATOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heddle/heddle.h"
#include "gpu_doubles.h"
#include "vulkan_drivers.h"

/* The plugin whose devices stand for sim's: "sim", "opencl", "vulkan", "cuda" or "rocm". Set before the case begins. */
static const char *accelerator = "sim";

static inline bool is_sim(void) {
  return strcmp(accelerator, "sim") == 0;
}

static inline bool is_gpu(void) {
  return strcmp(accelerator, "cuda") == 0 || strcmp(accelerator, "rocm") == 0;
}

/* A name, a list or a text with every "sim:" turned into the accelerator's. Lives as long as the process, each text once.
 * Any thread. NULL gives NULL. */
static inline const char *on(const char *text) {
  typedef struct turned {
    struct turned *next;
    char text[];
  } turned;
  static turned *all;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  if (text == NULL || is_sim()) return text;
  size_t n = 0, most = strlen(text) * 2 + 16; /* 'sim:' grows by less than its length */
  turned *t = malloc(sizeof *t + most);
  if (t == NULL) exit(1);
  for (const char *p = text; *p != '\0';) {
    bool name = strncmp(p, "sim:", 4) == 0;
    if (name) n += (size_t)snprintf(t->text + n, most - n, "%s:", accelerator);
    else t->text[n++] = *p;
    p += name ? 4 : 1;
  }
  t->text[n] = '\0';
  pthread_mutex_lock(&lock);
  turned *found = all;
  while (found != NULL && strcmp(found->text, t->text) != 0) found = found->next;
  if (found == NULL) {
    t->next = all;
    found = all = t;
  } else {
    free(t);
  }
  pthread_mutex_unlock(&lock);
  return found->text;
}

/* The accelerator's setting that lets values share pages with the host. */
static inline const char *unified_key(void) {
  static char key[32];
  snprintf(key, sizeof key, "%s.unified", accelerator);
  return key;
}

/* Whether settings, "key=value;key=value", are for the accelerator: tempers of sim's are for sim alone, but for a delay,
 * which the fault layer gives any plugin; settings of another plugin's are for that one. */
static inline bool settings_fit(const char *settings) {
  for (const char *p = settings; p != NULL && *p != '\0'; p = strchr(p, ';') != NULL ? strchr(p, ';') + 1 : NULL) {
    size_t n = strcspn(p, "=.;");
    if (p[n] != '.' || strncmp(p, "fault.", 6) == 0 || strncmp(p, "limit.", 6) == 0 || strncmp(p, "place.", 6) == 0)
      continue;
    if (n == strlen(accelerator) && strncmp(p, accelerator, n) == 0) continue;
    if (strncmp(p, "sim.delay_us=", 13) == 0 || strncmp(p, "sim.seed=", 9) == 0) continue;
    return false;
  }
  return true;
}

/* Sets the environment for the accelerator, before anything of it is loaded. NULL, or why there are no two devices of
 * its here. build: the build tree. */
static inline const char *accelerator_prepare(const char *build) {
  static heddle_error err;
  heddle_context *ctx = NULL;
  heddle_device *second = NULL;
  char path[1024];
  if (is_sim()) return NULL;
  if (strcmp(accelerator, "vulkan") == 0) {
    const char *lacks = vulkan_two_devices(build);
    if (lacks != NULL) return lacks;
  }
  if (is_gpu()) {
    const char *lacks = gpu_prepare(build, accelerator);
    if (lacks != NULL) return lacks;
  }
  setenv("POCL_DEVICES", "pthread pthread", 1);
  snprintf(path, sizeof path, "%s/tests/pocl-cache", build);
  setenv("POCL_CACHE_DIR", path, 0); /* CTest says another */
  snprintf(path, sizeof path, "%s/lib/heddle/plugins/libheddle_plugin_%s.so", build, accelerator);
  if (access(path, F_OK) != 0) return "the plugin is not built";
  if (heddle_context_create(NULL, 0, NULL, NULL, &ctx, &err) != HEDDLE_OK) return err.text;
  heddle_status s = heddle_context_find_device(ctx, on("sim:1"), &second, &err);
  heddle_context_release(ctx);
  return s == HEDDLE_OK ? NULL : err.text;
}

#endif
