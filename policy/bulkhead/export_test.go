package bulkhead

// Carried is how many admissions the state word counts before they are moved out
// of it.
const Carried = carried
