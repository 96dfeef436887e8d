/* Injected failures: counting calls, and answering the one that a rule names. */
#include "sim.h"

const char *sim_call_word(sim_call call) {
  static const char *const words[SIM_CALL_COUNT] = {
#define SIM_CALL_WORD(name, word) word,
      SIM_CALL_LIST(SIM_CALL_WORD)
#undef SIM_CALL_WORD
  };
  return (unsigned)call < SIM_CALL_COUNT ? words[call] : "call";
}

const sim_rule *sim_fault_hit(const sim_settings *settings, sim_counts *counts, uint32_t index, sim_call call) {
  const sim_rule *hit = NULL;
  uint64_t all = atomic_fetch_add(&counts->all[call], 1) + 1;
  uint64_t here = atomic_fetch_add(&counts->of[index][call], 1) + 1;
  for (uint32_t i = 0; i < settings->n_rules && hit == NULL; i++) {
    const sim_rule *rule = &settings->rules[i];
    if (rule->call != call) continue;
    if (rule->device < 0 ? rule->n == all : (uint32_t)rule->device == index && rule->n == here) hit = rule;
  }
  return hit;
}

static heddle_status answer(const sim_rule *rule, uint32_t index, heddle_status status, heddle_error *err) {
  return p_fail(err, status, -1000 - (int32_t)rule->call,
                "sim:%u: call %llu of '%s' failed, as the setting 'fail' says", index, (unsigned long long)rule->n,
                sim_call_word(rule->call));
}

heddle_status sim_fault_answer(heddle_pdevice *dev, const sim_rule *rule, heddle_error *err) {
  heddle_error own;
  bool memory = rule->call == SIM_CALL_ALLOC || rule->call == SIM_CALL_VIEW;
  if (!rule->fault) return answer(rule, dev->index, memory ? HEDDLE_ENOMEM : HEDDLE_EFAILED, err);
  answer(rule, dev->index, HEDDLE_EDEVICE, &own);
  sim_device_fault(dev, own.api_code, own.text);
  return sim_device_check(dev, err);
}

heddle_status sim_enter_pure(heddle_pinstance *self, uint32_t index, sim_call call, heddle_error *err) {
  if (self->settings.n_rules == 0) return HEDDLE_OK;
  const sim_rule *rule = sim_fault_hit(&self->settings, &self->counts, index, call);
  return rule == NULL ? HEDDLE_OK : answer(rule, index, HEDDLE_EFAILED, err);
}

heddle_status sim_enter(heddle_pdevice *dev, sim_call call, heddle_error *err) {
  heddle_status status = sim_device_check(dev, err);
  if (status != HEDDLE_OK || dev->settings.n_rules == 0) return status;
  const sim_rule *rule = sim_fault_hit(&dev->settings, dev->counts, dev->index, call);
  return rule == NULL ? HEDDLE_OK : sim_fault_answer(dev, rule, err);
}
