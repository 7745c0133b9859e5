package child

// Shadow is shadow.
const Shadow = shadow
