// What the items of a group make of a number that each of them has; every item gets it. Whole groups come here, or none of
// the group. With SUBGROUPS, subgroups do the first part with their own operations.
#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
shared float k_room[GROUP];

#ifdef SUBGROUPS
float k_group_sum(const float mine) {
  const float some = subgroupAdd(mine);
  float all = 0.0;
  if (subgroupElect()) k_room[gl_SubgroupID] = some;
  barrier();
  for (uint i = 0u; i < gl_NumSubgroups; i++) all += k_room[i];
  barrier();
  return all;
}

float k_group_max(const float mine) {
  const float some = subgroupMax(mine);
  float all = some;
  if (subgroupElect()) k_room[gl_SubgroupID] = some;
  barrier();
  for (uint i = 0u; i < gl_NumSubgroups; i++) all = k_room[i] > all ? k_room[i] : all;
  barrier();
  return all;
}
#else
float k_group_sum(const float mine) {
  const uint item = gl_LocalInvocationID.x;
  k_room[item] = mine;
  barrier();
  for (uint span = uint(GROUP) / 2u; span > 0u; span /= 2u) {
    if (item < span) k_room[item] += k_room[item + span];
    barrier();
  }
  const float all = k_room[0];
  barrier();
  return all;
}

float k_group_max(const float mine) {
  const uint item = gl_LocalInvocationID.x;
  k_room[item] = mine;
  barrier();
  for (uint span = uint(GROUP) / 2u; span > 0u; span /= 2u) {
    if (item < span && k_room[item + span] > k_room[item]) k_room[item] = k_room[item + span];
    barrier();
  }
  const float all = k_room[0];
  barrier();
  return all;
}
#endif
