#include "CLinux.h"

// Everything is inline in the header; SwiftPM wants one source file to build a C target.
