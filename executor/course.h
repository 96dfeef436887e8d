/* executor/course.h: how an executor does what its callers ask. There are three courses, a table each: a model as one program
 * (plain.c), a model in stages (stages.c), and a shell around lanes for several runs in flight, each of which has one
 * of the other two (flight.c). An executor has its table from its creation on, and no call asks which it is. */
#ifndef HEDDLE_EXECUTOR_COURSE_H
#define HEDDLE_EXECUTOR_COURSE_H

#include "executor/state.h"

/* What a call wants a lane for. */
typedef enum heddle__lane_use {
  HEDDLE__LANE_SET,   /* what is set is for the run started next; HEDDLE_EBUSY where all lanes have pending runs */
  HEDDLE__LANE_START, /* that lane, with the present value of each input */
  HEDDLE__LANE_ALONE, /* likewise; HEDDLE_EBUSY while any run is pending */
  HEDDLE__LANE_INFO,  /* that lane, pending or not */
  HEDDLE__LANE_OLDEST,
  HEDDLE__LANE_SHOWN /* the last run whose end was reported; HEDDLE_EBUSY where a later one has its memory */
} heddle__lane_use;

/* The executor is alive (heddle__executor_check) but where a function says otherwise. */
typedef struct heddle__course {
  /* The executor whose memory and drive a call is about; NULL: itself. One that is dead is given whatever is wanted: its
   * check has the words. holder: the one that was given the present value of an input. */
  heddle_status (*lane)(heddle_executor *ex, heddle__lane_use use, heddle_executor **out, heddle_error *err);
  heddle_executor *(*holder)(const heddle_executor *ex, uint32_t arg);
  void (*free)(heddle_executor *ex); /* no reference to it is left */

  /* Runs. begin only begins one, and checks the executor; run waits for it too, and gives the lane that it was in, whose
   * profile it leaves where it is timed. wait, of any thread: for the oldest pending run. cancel: of any thread too. */
  heddle_status (*begin)(heddle_executor *ex, bool timed, heddle_error *err);
  heddle_status (*run)(heddle_executor *ex, bool timed, uint64_t deadline_ns, heddle_executor **lane,
                       heddle_error *err);
  heddle_status (*start)(heddle_executor *ex, heddle_error *err);
  heddle_status (*wait)(heddle_executor *ex, uint64_t deadline_ns, heddle_error *err);
  heddle_status (*cancel)(heddle_executor *ex, heddle_error *err);
  /* Of the drive, whose user is the executor: where a run ended well, writes to bound outputs, and counts. */
  heddle__ended_fn ended;

  /* Plans and binds what a run needs, where that can be done before it. */
  heddle_status (*prepare)(heddle_executor *ex, heddle_error *err);
  /* Where no program is bound: an output of the last run, a tensor of its own, borrowed; or NULL. */
  heddle_tensor *(*result)(heddle_executor *ex, uint32_t i);
  /* Runs up to a node, and copies one value of it. */
  heddle_status (*value)(heddle_executor *ex, const heddle__keep *target, heddle_tensor **out, heddle_error *err);
  heddle_status (*explain)(heddle_executor *ex, heddle_explain_format format, char **out, heddle_error *err);
  heddle_status (*add_stats)(heddle_executor *ex, heddle_executor_stats *all, heddle_error *err);
} heddle__course;

extern const heddle__course heddle__plain_course, heddle__staged_course, heddle__flight_course;

/* The lane of an executor; *out is NULL for NULL. */
static inline heddle_status heddle__lane_for(heddle_executor *ex, heddle__lane_use use, heddle_executor **out,
                                             heddle_error *err) {
  *out = ex;
  return ex == NULL || ex->course->lane == NULL ? HEDDLE_OK : ex->course->lane(ex, use, out, err);
}

/* ---- executor.c: what the courses share */

/* Of an executor that is a lane of its own. begin and end are the parts of run (end_failed: the part of end where it is not
 * HEDDLE_OK): goes_on is set where the time was up. */
heddle_executor *heddle__single_holder(const heddle_executor *ex, uint32_t arg);
void heddle__single_free(heddle_executor *ex);
heddle_status heddle__single_begin(heddle_executor *ex, bool timed, uint64_t deadline_ns, heddle_error *err);
heddle_status heddle__single_end(heddle_executor *ex, uint64_t deadline_ns, bool *goes_on, heddle_error *err);
heddle_status heddle__single_end_failed(heddle_executor *ex, heddle_status s, bool *goes_on, heddle_error *err);
heddle_status heddle__single_run(heddle_executor *ex, bool timed, uint64_t deadline_ns, heddle_executor **lane,
                                 heddle_error *err);
heddle_status heddle__single_start(heddle_executor *ex, heddle_error *err);
heddle_status heddle__single_wait(heddle_executor *ex, uint64_t deadline_ns, heddle_error *err);
heddle_status heddle__single_cancel(heddle_executor *ex, heddle_error *err);
heddle_status heddle__single_add_stats(heddle_executor *ex, heddle_executor_stats *all, heddle_error *err);

/* A part of ended: the span of a traced run; where hung is not NULL, the executor is dead. Gives status. */
heddle_status heddle__single_ended(heddle_executor *ex, heddle_status status, const char *hung, heddle_error *words);

/* Puts the graph's file before words that do not begin with it; gives s. */
heddle_status heddle__name_file(const heddle_model *m, heddle_status s, heddle_error *err);

/* plain.c: of drive.h's again. */
heddle_status heddle__plain_again(void *user, heddle_status status, heddle_error *words);

#endif
