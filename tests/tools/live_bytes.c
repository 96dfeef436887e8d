/* tests/tools/live_bytes.c: makes a model and an executor and prints, as JSON, how many bytes each device gives then:
 * live_bytes MODEL DEVICES FLAGS [--KEY=VALUE | PATTERN=DEVICE]... The plugin's own counter, and for devices that compute
 * in host memory the blocks that were allocated for them. Nothing of the plan is read. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/bind.h"
#include "executor/course.h"

enum { MOST_SETTINGS = 16 };

static int fail(const heddle_error *err) {
  fprintf(stderr, "live_bytes: %s\n", err->text);
  return 1;
}

/* Blocks of the host's under imports. */
static uint64_t host_bytes(const heddle_model *m, const heddle_executor *ex, const heddle_device *dev) {
  uint64_t sum = 0;
  for (const heddle__packed *p = m->packed; p != NULL; p = p->next)
    if (p->dev == dev && p->memory->block != NULL) sum += p->memory->imported;
  const heddle__bound *b = ex->bound;
  for (uint32_t i = 0; i < b->program->plan->n_allocs; i++)
    if (b->program->packed[i] == NULL && b->memory[i]->dev == dev && b->memory[i]->block != NULL)
      sum += b->memory[i]->imported;
  return sum;
}

static int print(const heddle_model *m, const heddle_executor *ex) {
  printf("{");
  for (uint32_t i = 0; i < m->n_devices; i++) {
    heddle_device *dev = m->devices[i];
    heddle_error err = {0};
    int64_t bytes = 0;
    heddle_status s = heddle__device_open(dev, &err);
    if (s == HEDDLE_OK) s = dev->t->device.query(dev->handle, HEDDLE_QUERY_LIVE_BYTES, &bytes, &err);
    if (s != HEDDLE_OK) return fail(&err);
    heddle__device_close(dev);
    printf("%s\"%s\": %" PRId64, i == 0 ? "" : ", ", dev->name, bytes + (int64_t)host_bytes(m, ex, dev));
  }
  printf("}\n");
  return 0;
}

int main(int argc, char **argv) {
  heddle_setting settings[MOST_SETTINGS];
  heddle_context *ctx = NULL;
  heddle_model *m = NULL;
  heddle_executor *ex = NULL;
  heddle_error err = {0};
  size_t n_settings = 0, n_rules = 0;
  const char **rules = calloc((size_t)argc, sizeof *rules);
  if (argc < 4 || rules == NULL) {
    fprintf(stderr, "live_bytes MODEL DEVICES FLAGS [--KEY=VALUE | PATTERN=DEVICE]...\n");
    free(rules);
    return 2;
  }
  for (int i = 4; i < argc; i++) {
    char *equals = strchr(argv[i], '=');
    if (strncmp(argv[i], "--", 2) == 0 && equals != NULL && n_settings < MOST_SETTINGS) {
      *equals = '\0';
      settings[n_settings++] = (heddle_setting){argv[i] + 2, equals + 1};
    } else {
      rules[n_rules++] = argv[i];
    }
  }
  heddle_model_options options = {.struct_size = sizeof options,
                                  .devices = argv[2],
                                  .flags = (uint32_t)strtoul(argv[3], NULL, 0),
                                  .place = rules,
                                  .n_place = n_rules};
  heddle_status s = heddle_context_create(settings, n_settings, NULL, NULL, &ctx, &err);
  if (s == HEDDLE_OK) s = heddle_model_load(ctx, argv[1], NULL, &options, &m, &err);
  if (s == HEDDLE_OK) s = heddle_executor_create(m, &ex, &err);
  if (s == HEDDLE_OK && ex->bound == NULL) s = ex->course->prepare(ex, &err);
  int status = s == HEDDLE_OK ? print(m, ex) : fail(&err);
  heddle_executor_release(ex);
  heddle_model_release(m);
  heddle_context_release(ctx);
  free(rules);
  return status;
}
