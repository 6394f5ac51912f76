#pragma once
// Small copies between plain host memory and a device, by way of one slot of pinned memory: the
// caller fills or empties it, and the device copies in the order of the caller's own queue.
//
// A driver does much the same, slower. 64 KiB to the device took 11.2 us by the driver's copy till
// the source could be written again, and 5.4 so; 64 KiB back 18.7 and 13.0; 1 MiB back 148 and 57
// with the help of five threads (H100, the bare calls).

#include <optional>

#include "transfer/movement.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

// Nothing, of both: it must be made otherwise, and nothing was done. Of what is gathered the source
// is the caller's when it returns. That is not so where it must wait for the host first, as what is
// to be copied may not be there yet, and where all slots are in flight.
[[nodiscard]] std::optional<submitted> copy_gathered(queue& on, const movement& what,
                                                     transfer_options& options);

// Pre: the caller waits.
[[nodiscard]] std::optional<submitted> copy_scattered(queue& on, const movement& what,
                                                      transfer_options& options);

}  // namespace isthmus
