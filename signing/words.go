package signing

// words stand for the bytes 0 to 255 in a Fingerprint. They are common English
// words of three letters or more, in alphabetical order, no two with the same
// first four letters and no two that differ in a single letter, so that a
// misheard word is noticed. The list must never change: people compare what two
// versions of the programs print.
func words() [256]string {
	return [256]string{
		"acid", "actor", "agent", "alarm", "album", "amber", "anchor", "angel",
		"ankle", "apple", "april", "arch", "arrow", "atlas", "attic", "autumn",
		"badge", "bagel", "bamboo", "barrel", "basket", "beach", "beard", "beetle",
		"bell", "berry", "bishop", "blanket", "blizzard", "bonfire", "bottle", "brick",
		"bridge", "broom", "bucket", "butter", "cabin", "cactus", "camel", "candle",
		"canoe", "carpet", "castle", "cedar", "cello", "chalk", "cheese", "cherry",
		"chimney", "circus", "clover", "coffee", "copper", "coral", "cotton", "crown",
		"cube", "dance", "desert", "diamond", "dinner", "dolphin", "donkey", "dragon",
		"duck", "eagle", "earth", "echo", "eclipse", "eight", "elbow", "elephant",
		"envelope", "fabric", "falcon", "farmer", "fence", "finger", "flame", "forest",
		"fountain", "fox", "frog", "galaxy", "garden", "garlic", "giraffe", "glacier",
		"glove", "goat", "gold", "granite", "guitar", "hammer", "harbor", "hawk",
		"helmet", "honey", "horse", "hotel", "hundred", "iceberg", "index", "iron",
		"island", "ivory", "jacket", "jelly", "jewel", "judge", "juice", "jungle",
		"kettle", "keyhole", "kitchen", "kite", "koala", "lagoon", "lantern", "laptop",
		"lawn", "lemon", "leopard", "letter", "library", "lily", "lizard", "lobster",
		"lotus", "magnet", "mango", "maple", "marble", "market", "meadow", "melon",
		"milk", "mirror", "moon", "mosquito", "motor", "museum", "needle", "nest",
		"nickel", "noodle", "north", "nutmeg", "oak", "oasis", "ocean", "octopus",
		"office", "olive", "onion", "opera", "orange", "otter", "oven", "oyster",
		"paddle", "palace", "panda", "paper", "parrot", "pencil", "pepper", "piano",
		"pigeon", "pillow", "pirate", "planet", "pocket", "polar", "pony", "potato",
		"prism", "pumpkin", "puzzle", "pyramid", "quartz", "queen", "quiver", "rabbit",
		"radar", "raft", "rainbow", "raven", "recipe", "ribbon", "river", "robot",
		"rose", "rubber", "ruby", "salmon", "sandal", "satin", "saturn", "scarf",
		"school", "seven", "shadow", "shell", "shovel", "silver", "sketch", "snow",
		"sofa", "spider", "spoon", "squirrel", "statue", "summer", "sunset", "swan",
		"table", "teapot", "temple", "tennis", "thunder", "tiger", "toast", "tomato",
		"tractor", "trumpet", "tulip", "tunnel", "turtle", "twelve", "umbrella", "uncle",
		"uniform", "urban", "valley", "vanilla", "velvet", "violin", "volcano", "vulture",
		"waffle", "walnut", "walrus", "water", "whale", "wheat", "whistle", "window",
		"winter", "wolf", "yacht", "yellow", "yogurt", "zebra", "zipper", "zoo",
	}
}
