#include "site/series.h"
