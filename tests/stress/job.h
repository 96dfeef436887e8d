/* tests/stress/job.h: the piece of work that all stress cases repeat: a graph over cpu, sim:0 and sim:1 (or the
 * devices that stand for them, tests/accelerator.h) with a constant, its model and executor, and what its output must
 * be. Functions give statuses, not assertions: threads call them. */
#ifndef HEDDLE_TESTS_STRESS_JOB_H
#define HEDDLE_TESTS_STRESS_JOB_H

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "accelerator.h"
#include "heddle/heddle.h"

#define JOB_SIZE 8
#define JOB_SECOND UINT64_C(1000000000)
#define JOB_LONG (20 * JOB_SECOND)

/* a = x + w on cpu; b = a * w on sim:0; c = relu(b) on sim:1; d = c + a on cpu. Elsewhere the annotations are ignored,
 * and all of it runs on the first device of the list. */
static const char job_graph[] =
    "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":["
    "{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]},{\"op\":\"null\",\"name\":\"w\",\"inputs\":[]},"
    "{\"op\":\"Add\",\"name\":\"a\",\"device\":\"cpu\",\"inputs\":[[0,0,0],[1,0,0]]},"
    "{\"op\":\"Mul\",\"name\":\"b\",\"device\":\"sim:0\",\"inputs\":[[2,0,0],[1,0,0]]},"
    "{\"op\":\"Relu\",\"name\":\"c\",\"device\":\"sim:1\",\"inputs\":[[3,0,0]]},"
    "{\"op\":\"Add\",\"name\":\"d\",\"device\":\"cpu\",\"inputs\":[[4,0,0],[2,0,0]]}],"
    "\"arg_nodes\":[0,1],\"heads\":[[5,0,0]],\"node_row_ptr\":[0,1,2,3,4,5,6],"
    "\"attrs\":{\"dltype\":[\"list_str\",[\"float32\",\"float32\",null,null,null,null]],"
    "\"shape\":[\"list_shape\",[[8],[8],null,null,null,null]]}}";

static const float job_w[JOB_SIZE] = {0.5f, -1, 0.25f, 2, -0.125f, 1, 3, -2};

typedef struct job {
  heddle_graph *graph;
  heddle_params *params;
  heddle_model *model;
  heddle_executor *executor;
  float x[JOB_SIZE], d[JOB_SIZE];
} job;

static inline uint64_t job_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * JOB_SECOND + (uint64_t)t.tv_nsec;
}

static inline void job_sleep_ms(unsigned ms) {
  struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
  nanosleep(&t, NULL);
}

static inline heddle_tensor *job_tensor(const float *data, heddle_error *err) {
  static const int64_t shape[1] = {JOB_SIZE};
  heddle_tensor *t = NULL;
  heddle_tensor_wrap((void *)(uintptr_t)data, HEDDLE_FLOAT32, shape, 1, NULL, NULL, NULL, &t, err);
  return t;
}

/* Settings that make completions come late, by at most so many microseconds: sim's own delay, else the fault layer's.
 * Gives how many. */
static inline size_t job_delay(heddle_setting out[2], const char *us) {
  out[0] = is_sim() ? (heddle_setting){"sim.delay_us", us} : (heddle_setting){"layers", "fault"};
  out[1] = (heddle_setting){"fault.delay_us", us};
  return is_sim() ? 1 : 2;
}

/* devices NULL: cpu,sim:0,sim:1 as annotated. */
static inline heddle_status job_model(heddle_context *ctx, job *j, const char *devices, uint32_t flags,
                                      heddle_error *err) {
  const char *name = "w";
  heddle_model_options options = {.struct_size = sizeof options, .flags = flags};
  const char *text = on(job_graph);
  options.devices = on(devices != NULL ? devices : "cpu,sim:0,sim:1");
  if (devices != NULL) options.flags |= HEDDLE_MODEL_IGNORE_ANNOTATIONS;
  heddle_tensor *w = job_tensor(job_w, err);
  heddle_status s = w != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
  if (s == HEDDLE_OK) s = heddle_graph_parse(text, strlen(text), "job", NULL, &j->graph, err);
  if (s == HEDDLE_OK) s = heddle_params_create(&name, &w, 1, &j->params, err);
  if (s == HEDDLE_OK) s = heddle_model_create(ctx, j->graph, j->params, &options, &j->model, err);
  heddle_tensor_release(w);
  return s;
}

static inline heddle_status job_set(heddle_executor *ex, float *x, float first, heddle_error *err) {
  for (int i = 0; i < JOB_SIZE; i++) x[i] = first + (float)i;
  heddle_tensor *t = job_tensor(x, err);
  if (t == NULL) return HEDDLE_ENOMEM;
  heddle_status s = heddle_executor_set_input(ex, 0, t, err);
  heddle_tensor_release(t);
  return s;
}

static inline heddle_status job_executor(job *j, float first, heddle_error *err) {
  heddle_status s = heddle_executor_create(j->model, &j->executor, err);
  return s == HEDDLE_OK ? job_set(j->executor, j->x, first, err) : s;
}

static inline heddle_status job_read(heddle_executor *ex, float *d, heddle_error *err) {
  heddle_tensor *t = job_tensor(d, err);
  if (t == NULL) return HEDDLE_ENOMEM;
  heddle_status s = heddle_executor_get_output(ex, 0, t, err);
  heddle_tensor_release(t);
  return s;
}

/* HEDDLE_EFAILED where the numbers are not those of x. */
static inline heddle_status job_check(const float *x, const float *d, heddle_error *err) {
  for (int i = 0; i < JOB_SIZE; i++) {
    float a = x[i] + job_w[i], b = a * job_w[i], want = (b > 0 ? b : 0) + a;
    float off = d[i] - want;
    if (off <= 1e-4f && off >= -1e-4f) continue;
    err->status = HEDDLE_EFAILED;
    snprintf(err->text, sizeof err->text, "element %d is %g, expected %g", i, (double)d[i], (double)want);
    return HEDDLE_EFAILED;
  }
  return HEDDLE_OK;
}

/* Runs, reads and checks. */
static inline heddle_status job_run(job *j, heddle_error *err) {
  heddle_status s = heddle_executor_run(j->executor, JOB_LONG, err);
  memset(j->d, 0, sizeof j->d);
  if (s == HEDDLE_OK) s = job_read(j->executor, j->d, err);
  return s == HEDDLE_OK ? job_check(j->x, j->d, err) : s;
}

static inline void job_drop(job *j) {
  heddle_executor_release(j->executor);
  heddle_model_release(j->model);
  heddle_params_release(j->params);
  heddle_graph_release(j->graph);
  memset(j, 0, sizeof *j);
}

/* All of it, once. */
static inline heddle_status job_whole(heddle_context *ctx, const char *devices, float first, heddle_error *err) {
  job j = {0};
  heddle_status s = job_model(ctx, &j, devices, 0, err);
  if (s == HEDDLE_OK) s = job_executor(&j, first, err);
  if (s == HEDDLE_OK) s = job_run(&j, err);
  job_drop(&j);
  return s;
}

#endif
