// What every shader begins with: which item of which group it is. See plugins/vulkan/shader.h for how shaders are
// launched. A variant may define GROUP, the items of a group, which is 64 unless it does.
#extension GL_EXT_control_flow_attributes : enable

#ifndef GROUP
#define GROUP 64
#endif
layout(local_size_x = GROUP) in;

// Which group: groups are counted in x and y. Those past the end of a launch come out too large.
uint k_group() {
  return gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x;
}

// Which item of all.
uint k_item() {
  return k_group() * uint(GROUP) + gl_LocalInvocationID.x;
}

// Not "x != x", which a compiler may take for false.
bool k_is_nan(float x) {
  return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
}

bool k_is_infinite(float x) {
  return (floatBitsToUint(x) & 0x7fffffffu) == 0x7f800000u;
}
