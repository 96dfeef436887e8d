/* Fences, which say that a piece of work is done, and works, which say what it is. */
#include "engine_inside.h"

eng_fence *eng_fence_new(void) {
  eng_fence *fence = calloc(1, sizeof *fence);
  if (fence == NULL) abort(); /* a double of a test: there is nothing to be done */
  fence->refs = 1;
  return fence;
}

eng_fence *eng_fence_hold(eng_fence *fence) {
  if (fence != NULL) fence->refs++;
  return fence;
}

void eng_fence_drop(eng_fence *fence) {
  if (fence != NULL && --fence->refs == 0) free(fence);
}

void eng_fence_await(eng_fence *fence) {
  while (!fence->done) pthread_cond_wait(&eng_done, &eng_lock);
}

eng_work *eng_work_new(eng_work_kind kind) {
  eng_work *work = calloc(1, sizeof *work);
  if (work == NULL) abort(); /* as above */
  work->refs = 1;
  work->kind = kind;
  return work;
}

eng_work *eng_work_hold(eng_work *work) {
  atomic_fetch_add(&work->refs, 1);
  return work;
}

void eng_work_drop(eng_work *work) {
  if (work == NULL || atomic_fetch_sub(&work->refs, 1) != 1) return;
  eng_code_drop(work->kernel.code);
  free(work->kernel.args);
  free(work->copy.staged);
  eng_plan_drop(work->plan);
  free(work);
}
