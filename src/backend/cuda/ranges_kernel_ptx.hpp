// SPDX-License-Identifier: Apache-2.0
#pragma once
// The PTX text of the kernel that copies ranges of bytes, compiled by the driver for its device. It
// uses PTX 4.3 and compute capability 3.0, so that every driver since CUDA 7.5 accepts it.

namespace isthmus::cuda {

inline constexpr char k_ranges_ptx[] = R"ptx(
// The list has `count` entries of {destination, source, nbytes}, 8 bytes each. No entry overlaps
// the destination of another one. A block has (x, y) threads. Each row of x threads, at least 32,
// copies one entry at a time, and accesses no byte outside it.
.version 4.3
.target sm_30
.address_size 64

.visible .entry isthmus_copy_ranges(.param .u64 list_parameter, .param .u32 count_parameter)
{
  .reg .pred is_done, is_aligned, is_early, is_shifted;
  .reg .u32 count, index, step, row, rows, lane_number, lanes_number;
  .reg .u32 word, next_word, word_2, word_3, choice, byte;
  .reg .u64 list, entry, lane, lanes, write_at, read_at, left;
  .reg .u64 mask, head, shift, slack, units, unit, offset, at;

  ld.param.u64 list, [list_parameter];
  cvta.to.global.u64 list, list;
  ld.param.u32 count, [count_parameter];
  mov.u32 lane_number, %tid.x;
  cvt.u64.u32 lane, lane_number;
  mov.u32 lanes_number, %ntid.x;
  cvt.u64.u32 lanes, lanes_number;
  mov.u32 row, %tid.y;
  mov.u32 rows, %ntid.y;
  mov.u32 index, %ctaid.x;
  mad.lo.u32 index, index, rows, row;
  mov.u32 step, %nctaid.x;
  mul.lo.u32 step, step, rows;

next_entry:
  setp.ge.u32 is_done, index, count;
  @is_done bra end;
  mul.wide.u32 entry, index, 24;
  add.u64 entry, entry, list;
  ld.global.u64 write_at, [entry];
  cvta.to.global.u64 write_at, write_at;
  ld.global.u64 read_at, [entry+8];
  cvta.to.global.u64 read_at, read_at;
  ld.global.u64 left, [entry+16];

  // Uses units of 16 bytes if both sides can be aligned to them, else of 4.
  xor.b64 mask, write_at, read_at;
  and.b64 mask, mask, 15;
  setp.eq.u64 is_aligned, mask, 0;
  selp.u64 mask, 15, 3, is_aligned;

  // Copies the bytes before the destination's first whole unit, one per thread. The source word
  // that contains the beginning of that unit must not begin before the range.
  sub.u64 head, 0, write_at;
  and.b64 head, head, mask;
  add.u64 shift, read_at, head;
  and.b64 shift, shift, 3;
  setp.gt.u64 is_early, shift, head;
  @is_early add.u64 head, head, 4;
  min.u64 head, head, left;
  setp.ge.u64 is_done, lane, head;
  @is_done bra whole_units;
  add.u64 at, read_at, lane;
  ld.global.u8 byte, [at];
  add.u64 at, write_at, lane;
  st.global.u8 [at], byte;

whole_units:
  add.u64 write_at, write_at, head;
  add.u64 read_at, read_at, head;
  sub.u64 left, left, head;
  mov.u64 unit, lane;
  @!is_aligned bra words;
  shr.u64 units, left, 4;

next_unit:
  setp.ge.u64 is_done, unit, units;
  @is_done bra units_end;
  shl.b64 offset, unit, 4;
  add.u64 at, read_at, offset;
  ld.global.cs.v4.u32 {word, next_word, word_2, word_3}, [at];
  add.u64 at, write_at, offset;
  st.global.cs.v4.u32 [at], {word, next_word, word_2, word_3};
  add.u64 unit, unit, lanes;
  bra next_unit;

units_end:
  shl.b64 offset, units, 4;
  bra tail;

  // Each unit of 4 bytes is extracted from two consecutive words of the source, or is a whole word.
  // The second word must not extend beyond the range.
words:
  setp.ne.u64 is_shifted, shift, 0;
  sub.u64 read_at, read_at, shift;
  sub.u64 slack, 4, shift;
  selp.u64 slack, slack, 0, is_shifted;
  cvt.u32.u64 choice, shift;
  mad.lo.u32 choice, choice, 0x1111, 0x3210;
  mov.u64 units, 0;
  setp.lt.u64 is_done, left, slack;
  @is_done bra words_end;
  sub.u64 units, left, slack;
  shr.u64 units, units, 2;

next_word_unit:
  setp.ge.u64 is_done, unit, units;
  @is_done bra words_end;
  shl.b64 offset, unit, 2;
  add.u64 at, read_at, offset;
  ld.global.u32 word, [at];
  mov.u32 next_word, 0;
  @is_shifted ld.global.u32 next_word, [at+4];
  prmt.b32 word, word, next_word, choice;
  add.u64 at, write_at, offset;
  st.global.u32 [at], word;
  add.u64 unit, unit, lanes;
  bra next_word_unit;

words_end:
  add.u64 read_at, read_at, shift;
  shl.b64 offset, units, 2;

  // Copies the bytes after the last whole unit, one per thread.
tail:
  add.u64 offset, offset, lane;
  setp.ge.u64 is_done, offset, left;
  @is_done bra entry_end;
  add.u64 at, read_at, offset;
  ld.global.u8 byte, [at];
  add.u64 at, write_at, offset;
  st.global.u8 [at], byte;

entry_end:
  add.u32 index, index, step;
  bra next_entry;

end:
  ret;
}
)ptx";

}  // namespace isthmus::cuda
